"""The accounts of a test company with the simulators of all channels.

They are derived from the company's id: nothing is stored. A simulator identifies its caller by the secret
(`find_company_id` with the purpose `channel/<source>/<field>`).
"""

import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256

from msgspec import Struct

from sapa.context import AppContext
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.connections.accounts import HOOKS
from sapa.sandbox.accounts import build_secret, find_company_id
from sapa.values.ids import ALPHABET
from sapa.values.provider_accounts import AccountField

HOOK = "hook"
"""The field name in the purpose of a callback address's secret."""

_ACCOUNTS: Mapping[str, str] = {
    "phone_number_id": "55{source}{company}",
    "waba_id": "77{company}",
    "phone_number": "+1202555014{source}",
    "page_id": "33{company}",
    "instagram_id": "1784{company}",
    "business_id": "sbx_business_{company}",
    "client_key": "sbx_app_{company}",
    "address": "shop-{company}@simulator.test",
    "inbound_address": "shop-{company}@simulator.test",
    "sender_name": "Sandbox",
    "smtp_host": "127.0.0.1",
    "smtp_port": "25",
    "security": "plain",
    "title": "Sandbox",
    "color": "",
    "greeting": "",
    "hours": "",
    "agent": "",
    "form": "",
    "origins": "",
    "username": "shop-{company}",
}
"""Values of the public fields, derived from the company's id."""


class HookOwner(Struct, frozen=True):
    """The owner of a callback address."""

    company_id: int
    source: Source


def build_hook_token(context: AppContext, company_id: int, source: Source) -> str:
    """The last part of the address that a channel's simulator posts callbacks to."""
    return build_secret(context, company_id, _purpose(source, HOOK))


def find_hook(context: AppContext, token: str) -> HookOwner | None:
    if not token.startswith("sbx_"):
        return None
    for source in Source:
        if (company_id := find_company_id(context, token, _purpose(source, HOOK))) is not None:
            return HookOwner(company_id, source)
    return None


def build_connection_id(company_id: int, source: Source) -> str:
    """Deterministic, in the form of every other id."""
    bits = int.from_bytes(sha256(f"sandbox/{company_id}/{source}".encode()).digest()[:16])
    return "chan_" + "".join(ALPHABET[bits >> shift & 0x1F] for shift in range(125, -1, -5))


def find_source(company_id: int, connection_id: str) -> Source | None:
    return next((source for source in Source if build_connection_id(company_id, source) == connection_id), None)


def build_app_id(company_id: int, source: Source) -> str:
    """The Graph API's app, whose secret signs the callbacks of one channel."""
    return f"99{list(Source).index(source)}{company_id}"


def build_public(company_id: int, source: Source, fields: Sequence[AccountField]) -> dict[str, str]:
    number = list(Source).index(source)
    return {
        field.name: _ACCOUNTS.get(field.name, f"sbx_{field.name}_{{company}}").format(company=company_id, source=number)
        for field in fields
        if not field.is_secret
    }


def build_credentials(
    context: AppContext, company_id: int, source: Source, fields: Sequence[AccountField]
) -> dict[str, str]:
    return {
        field.name: build_secret(context, company_id, _purpose(source, field.name))
        for field in fields
        if field.is_secret
    }


class SandboxAccount(Struct, frozen=True):
    """A company's account with the simulator of one channel."""

    company_id: int
    source: Source
    public: Mapping[str, str]
    secrets: Mapping[str, str]
    hook: str
    """The path for callbacks."""


def build_account(context: AppContext, company_id: int, source: Source) -> SandboxAccount:
    fields = CHANNELS[source].fields
    return SandboxAccount(
        company_id,
        source,
        build_public(company_id, source, fields),
        build_credentials(context, company_id, source, fields),
        HOOKS + build_hook_token(context, company_id, source),
    )


def find_account(context: AppContext, secret: str, field: str, sources: Sequence[Source]) -> SandboxAccount | None:
    """The account with this access token or password."""
    for source in sources:
        company_id = find_company_id(context, secret, _purpose(source, field))
        if company_id is not None:
            return build_account(context, company_id, source)
    return None


def sign(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, sha256).hexdigest()


def _purpose(source: Source, field: str) -> str:
    return f"channel/{source}/{field}"
