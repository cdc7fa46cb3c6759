"""The web chat: a channel of our own on a company's web pages."""

from collections.abc import Mapping, Sequence
from html import escape

import asyncpg

from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database
from sapa.messaging.channels.files import FileRule
from sapa.messaging.channels.guide import ChannelGuide, GuideStep
from sapa.messaging.channels.interface import (
    MEDIA_TYPES,
    Capabilities,
    Channel,
    ChannelAccount,
    Identity,
    InboundMedia,
    Item,
    OutgoingMessage,
    SendReceipt,
    SendRefusal,
    Source,
)
from sapa.messaging.channels.widget import calls, messages
from sapa.messaging.channels.widget.types import PREFIX
from sapa.outbound.client import NotSent, Unclear
from sapa.values.provider_accounts import AccountField

ORIGINS = r"(?:https?://[^\s,/]+[\s,]*)*"
SIMULATED_PREFIX = "sim_"
"""The prefix of simulated visitors' ids."""


def _optional(name: str, label: str, pattern: str = r".*", hint: str = "", max_length: int = 4096) -> AccountField:
    return AccountField(
        name, label, is_secret=False, is_required=False, pattern=pattern, hint=hint, max_length=max_length
    )


GUIDE = ChannelGuide(
    (
        GuideStep(
            "What you need",
            "A site into which you can put a line of HTML. The web chat needs no account. This server must "
            "have a public https address.",
        ),
    ),
    "Put the line before the end of the body of every page that shall have the chat.",
    "web-chat",
)


class Widget:
    """A send appends a message to the visitor's conversation; the page fetches it and reports when it was read."""

    source = Source.WIDGET
    label = "Web chat"
    names: Sequence[str] = ("widget",)
    own_fields: Sequence[str] = ()
    address = ""
    guide = GUIDE
    fields: Sequence[AccountField] = (
        AccountField(
            "secret", "Secret with which your server verifies visitors", is_required=False, is_generated=True,
            pattern=r".{16,}", hint="At least 16 characters.",
        ),
        _optional("title", "Title of the chat", hint="At most 60 characters.", max_length=60),
        _optional(
            "origins", "Sites that may show the chat", ORIGINS,
            "Addresses without a path, such as https://shop.example, with spaces between them. If empty, all sites.",
        ),
        _optional("color", "Colour", r"#[0-9A-Fa-f]{6}", "A colour such as #0b6b5d."),
        _optional("greeting", "Greeting", hint="At most 200 characters.", max_length=200),
        _optional("hours", "Opening hours", hint="As visitors read them, at most 100 characters.", max_length=100),
        _optional("agent", "Name shown with replies", hint="At most 60 characters.", max_length=60),
        _optional("form", "Asked before the chat", r"name|contact"),
    )  # fmt: skip
    capabilities = Capabilities(
        sends=frozenset({"message", "template", "media", "interactive"}),
        files=dict.fromkeys(MEDIA_TYPES, FileRule(100 * 1_048_576)),
        max_files=10,
        longest_text=4096,
        window=None,
        reports=frozenset({"sent", "delivered", "read"}),
        identities=(calls.VISITOR,),
        per_second=1000,
        has_choices=True,
    )

    def build_snippet(self, address: str, key: str) -> str:
        return f'<script src="{escape(address)}{PREFIX}/widget.js" data-key="{escape(key)}" async></script>'

    async def verify(self, connection: ChannelAccount) -> None:
        """There is no other party to ask."""

    async def send(self, connection: ChannelAccount, message: OutgoingMessage) -> SendReceipt | SendRefusal:
        company, visitor_id = connection.company, message.to.value
        if connection.address and visitor_id.startswith(SIMULATED_PREFIX):
            return await self._hand_over(connection, message)
        view = calls.build_view(message)
        try:
            async with _database(connection).transaction() as tx:
                stored = await messages.append_outbound(tx, company.id, visitor_id, message.reference, view)
        except (DatabaseAway, asyncpg.PostgresError) as error:
            raise Unclear(f"it is unknown whether the database stored the message: {error}") from error
        if stored is None:
            return SendRefusal("unknown_visitor", "The chat has no visitor with this id.", "recipient")
        return SendReceipt(messages.build_message_id(visitor_id, stored.number))

    async def show_typing(self, connection: ChannelAccount, to: Identity) -> None:
        payload = messages.build_typing_payload(connection.company.id, to.value)
        _database(connection).notifier.notify({(messages.TYPING_CHANNEL, payload)})

    async def _hand_over(self, connection: ChannelAccount, message: OutgoingMessage) -> SendReceipt | SendRefusal:
        """Sends to the simulator of visitors."""
        headers = {"content-type": "application/json", "authorization": f"Bearer {connection.credentials['secret']}"}
        url, content = f"{connection.address}/messages", calls.build_handed(message)
        return calls.parse_receipt(await connection.client.call("POST", url, headers=headers, content=content))

    async def fetch_media(self, connection: ChannelAccount, media: InboundMedia, max_bytes: int) -> tuple[str, bytes]:
        raise NotSent("visitors send no files")

    def confirm(self, credentials: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        return None

    def check_callback(self, credentials: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> None:
        calls.check_signature(credentials["secret"], headers, body)

    def read_callback(self, account: Mapping[str, str], body: bytes) -> Sequence[Item]:
        return calls.parse_callback(body)


def _database(connection: ChannelAccount) -> Database:
    if connection.database is None:
        raise NotSent("the chat's connection was opened without a database")
    return connection.database


CHANNELS: Sequence[Channel] = (Widget(),)
