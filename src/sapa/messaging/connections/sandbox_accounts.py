"""The accounts that a test environment has with the simulators of all channels.

They follow from the company's id: nobody opens them, nothing of them is stored, and a simulator knows by the secret
who calls (`sapa.sandbox.accounts.find_company_id` with the purpose `channel/<source>/<field>`).
"""

from collections.abc import Mapping
from hashlib import sha256

from msgspec import Struct

from sapa.context import Kit
from sapa.messaging.channels.interface import Channel, Connection, Field, Source
from sapa.sandbox.accounts import build_secret, find_company_id
from sapa.values.company import Company
from sapa.values.ids import ALPHABET

HOOK = "hook"
"""Stands for a field in the purpose of the secret in a callback's address."""

PATHS: Mapping[Source, str] = {
    Source.MSGAPP_CLOUD: "/sandbox/graph/v25.0",
    Source.MSGAPP_COEX: "/sandbox/graph/v25.0",
    Source.SOCIAL_NETWORK: "/sandbox/graph/v25.0",
    Source.PHOTO_SOCIAL: "/sandbox/instagram/v22.0",
    Source.SHORT_VIDEO: "/sandbox/tiktok/open_api/v1.3",
    Source.WIDGET: "/sandbox/widget",
}

_ACCOUNTS: Mapping[str, str] = {
    "phone_number_id": "55{source}{company}",
    "waba_id": "77{source}{company}",
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
    "origins": "",
    "username": "shop-{company}",
}
"""Each field that is no secret, by the company's id."""


class Hook(Struct, frozen=True):
    company_id: int
    source: Source


def build_hook_token(kit: Kit, company_id: int, source: Source) -> str:
    """The last part of the address that the simulator of a channel calls back at."""
    return build_secret(kit, company_id, _purpose(source, HOOK))


def find_hook(kit: Kit, token: str) -> Hook | None:
    if not token.startswith("sbx_"):
        return None
    for source in Source:
        if (company_id := find_company_id(kit, token, _purpose(source, HOOK))) is not None:
            return Hook(company_id, source)
    return None


def build_connection_id(company_id: int, source: Source) -> str:
    """Always the same, in the shape of every other id."""
    bits = int.from_bytes(sha256(f"sandbox/{company_id}/{source}".encode()).digest()[:16])
    return "chan_" + "".join(ALPHABET[bits >> shift & 0x1F] for shift in range(125, -1, -5))


def find_source(company_id: int, connection_id: str) -> Source | None:
    return next((source for source in Source if build_connection_id(company_id, source) == connection_id), None)


def build_account(company_id: int, source: Source, fields: tuple[Field, ...]) -> dict[str, str]:
    number = list(Source).index(source)
    return {
        field.name: _ACCOUNTS.get(field.name, f"sbx_{field.name}_{{company}}").format(company=company_id, source=number)
        for field in fields
        if not field.is_secret
    }


def build_credentials(kit: Kit, company_id: int, source: Source, fields: tuple[Field, ...]) -> dict[str, str]:
    return {
        field.name: build_secret(kit, company_id, _purpose(source, field.name)) for field in fields if field.is_secret
    }


async def build_connection(kit: Kit, company: Company, channel: Channel) -> Connection:
    fields = tuple(channel.fields)
    return Connection(
        company=company,
        id=build_connection_id(company.id, channel.source),
        source=channel.source,
        address=await _find_address(kit, channel.source),
        account=build_account(company.id, channel.source, fields),
        credentials=build_credentials(kit, company.id, channel.source, fields),
        client=kit.client,
        database=kit.database,
    )


async def _find_address(kit: Kit, source: Source) -> str:
    """On this process's own loopback address, wherever the channel's real one may be."""
    if source is Source.MAIL:
        return await kit.mail_sink.address()
    return await kit.loopback.address() + PATHS.get(source, "")


def _purpose(source: Source, field: str) -> str:
    return f"channel/{source}/{field}"
