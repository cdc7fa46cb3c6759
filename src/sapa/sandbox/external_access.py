"""How programs outside reach a simulator: with the token of the company's sandbox account."""

from collections.abc import Awaitable, Callable
from typing import Literal

import asyncpg
import msgspec
from msgspec import Struct

from sapa.context import AppContext
from sapa.values.hook_calls import HookAnswer, HookCall

RefusedCall = Literal["unauthorized", "too_many", "too_large", "malformed"]
"""Why a call does not reach the simulator, or cannot be read by it."""

MALFORMED = (
    msgspec.DecodeError, asyncpg.DataError, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError,
)  # fmt: skip
"""What a simulator raises when it reads a request that is not as its provider expects."""

MAX_BYTES = 1_048_576
MAX_SIGN_IN_BYTES = 4096


class ExternalAccess(Struct, frozen=True, kw_only=True):
    """The simulator under one prefix, and how it meets callers before their bodies are read."""

    prefix: str
    serve: Callable[[AppContext, HookCall], Awaitable[HookAnswer]]
    find_company_id: Callable[[AppContext, HookCall], int | None]
    """The company of the call's token; None if it is not valid."""
    refuse: Callable[[HookCall, RefusedCall], HookAnswer]
    """In the provider's shape."""
    sign_in_paths: frozenset[str] = frozenset()
    """Paths with the credentials in the body, of which a few KiB are read first."""
    max_bytes: int = MAX_BYTES
