"""Who calls a simulator of a channel, and where that company wants to be called back."""

import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256

from msgspec import Struct

from sapa.context import Kit
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.connections import sandbox_accounts
from sapa.sandbox.accounts import find_company_id

HOOKS = "/hooks/channels/"


class Account(Struct, frozen=True):
    """A company's account with the simulator of one channel."""

    company_id: int
    source: Source
    public: Mapping[str, str]
    secrets: Mapping[str, str]
    hook: str
    """The path that callbacks are posted to."""


def build_account(kit: Kit, company_id: int, source: Source) -> Account:
    fields = tuple(CHANNELS[source].fields)
    return Account(
        company_id,
        source,
        sandbox_accounts.build_account(company_id, source, fields),
        sandbox_accounts.build_credentials(kit, company_id, source, fields),
        HOOKS + sandbox_accounts.build_hook_token(kit, company_id, source),
    )


def find_account(kit: Kit, secret: str, field: str, sources: Sequence[Source]) -> Account | None:
    """Whose access token or password it is."""
    for source in sources:
        company_id = find_company_id(kit, secret, f"channel/{source}/{field}")
        if company_id is not None:
            return build_account(kit, company_id, source)
    return None


def sign(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, sha256).hexdigest()
