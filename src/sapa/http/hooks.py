"""Where others call us by their own rules: providers' callbacks, and the simulators that play the providers."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import msgspec
import structlog
from msgspec import Struct

from sapa.db.pool import AWAY
from sapa.http.errors import ApiError, InternalError, NotFound, ServiceUnavailable

Kit = TypeVar("Kit")
_JSON = {"content-type": "application/json"}

log = structlog.get_logger()


class HookCall(Struct, frozen=True):
    """A call as it came in, whatever server took it. Header names are in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    address: str


class HookAnswer(Struct, frozen=True):
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = msgspec.field(default_factory=_JSON.copy)


class Hook(Struct, Generic[Kit], frozen=True):
    """What answers the calls under one prefix, which ends in a slash."""

    prefix: str
    answer: Callable[[Kit, HookCall], Awaitable[HookAnswer]]


async def answer_hook(kit: Kit, hooks: Sequence[Hook[Kit]], call: HookCall) -> HookAnswer:
    """By the hook whose prefix the path begins with; what goes wrong leaves in the API's envelope."""
    try:
        for hook in hooks:
            if call.path.startswith(hook.prefix):
                return await hook.answer(kit, call)
        raise NotFound
    except ApiError as error:
        return HookAnswer(error.status, error.encode(), {**_JSON, **error.headers})
    except AWAY as error:
        log.warning("database unavailable", path=call.path, reason=f"{type(error).__name__}: {error}")
        away = ServiceUnavailable(headers={"retry-after": "1"})
        return HookAnswer(away.status, away.encode(), {**_JSON, **away.headers})
    except Exception:
        log.exception("hook failed", path=call.path)
        return HookAnswer(500, InternalError().encode())
