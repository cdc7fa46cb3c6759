"""Messenger: conversations of a Facebook page."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sapa.messaging.channels import meta, social, social_callbacks
from sapa.messaging.channels.files import FileRule, OutgoingFile
from sapa.messaging.channels.guide import ChannelGuide, GuideStep
from sapa.messaging.channels.identities import build_parser
from sapa.messaging.channels.interface import (
    BadAccount,
    Capabilities,
    Channel,
    ChannelAccount,
    Content,
    Identity,
    IdentityKind,
    InboundMedia,
    Item,
    LinkButton,
    MediaType,
    OutgoingMessage,
    SendReceipt,
    SendRefusal,
    Source,
)
from sapa.messaging.channels.reading import text
from sapa.values.provider_accounts import AccountField

LONGEST_LINK_BODY = 640
"""The limit of the button template's text."""

PSID = IdentityKind(
    "psid", build_parser(social.SCOPED_ID, "must be the page-scoped id by which Messenger knows the customer")
)

GUIDE = ChannelGuide(
    (
        GuideStep(
            "What you need",
            "A Facebook page that you control, and the business portfolio at Meta that owns it. This server "
            "must have a public https address.",
        ),
        GuideStep(
            "The app and the token",
            "At developers.facebook.com create an app with the use case Messenger. App settings > Basic has "
            "the app secret; a system user of the portfolio generates the page's token.",
            ("app_secret", "access_token"),
        ),
    ),
    "In the app open Messenger > Webhooks. Enter the callback address and the verify token, and subscribe the "
    "page to messages.",
    "messenger",
)


class Messenger:
    source = Source.SOCIAL_NETWORK
    label = "Messenger"
    names: Sequence[str] = ("social_network",)
    own_fields: Sequence[str] = ()
    upload_seconds = social.UPLOAD_SECONDS
    address = "https://graph.facebook.com/v25.0"
    guide = GUIDE
    fields: Sequence[AccountField] = (
        AccountField("page_id", "Page id", is_secret=False, pattern=r"[0-9]{1,40}"),
        AccountField("access_token", "Page access token"),
        AccountField("app_secret", "App secret"),
        AccountField("verify_token", "Verify token of the callback", is_required=False, is_generated=True),
    )
    capabilities = Capabilities(
        sends=frozenset({"message", "template", "media", "interactive"}),
        files={
            "image": FileRule(8 * social.MB, frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})),
            "video": FileRule(25 * social.MB, frozenset({"video/mp4", "video/quicktime", "video/webm", "video/ogg"})),
            "audio": FileRule(
                25 * social.MB, frozenset({"audio/aac", "audio/mpeg", "audio/mp4", "audio/ogg", "audio/wav"})
            ),
            "document": FileRule(25 * social.MB),
        },
        longest_text=2000,
        window=timedelta(hours=24),
        reports=frozenset({"sent", "delivered", "read", "failed"}),
        identities=(PSID,),
        per_second=300,
        max_callback_bytes=meta.MAX_CALLBACK_BYTES,
        media_per_second=10,
        longest_link_body=LONGEST_LINK_BODY,
        has_quotes=True,
    )

    async def verify(self, connection: ChannelAccount) -> None:
        page_id = connection.account["page_id"]
        found = await meta.get_node(connection, page_id, fields="id,name")
        if text(found, "id") != page_id:
            raise BadAccount(f"the token belongs to the page {text(found, 'id')}, not to {page_id}")

    async def send(self, connection: ChannelAccount, message: OutgoingMessage) -> SendReceipt | SendRefusal:
        return await social.send(connection, _path(connection), message, build_link(message.content))

    async def react(
        self, connection: ChannelAccount, to: Identity, message_id: str, emoji: str | None
    ) -> SendRefusal | None:
        return await social.react(connection, _path(connection), to, message_id, emoji)

    async def mark_read(
        self, connection: ChannelAccount, to: Identity, message_id: str, is_typing: bool
    ) -> SendRefusal | None:
        return await social.mark_read(connection, _path(connection), to, is_typing)

    async def upload_file(
        self, connection: ChannelAccount, type: MediaType, file: OutgoingFile
    ) -> str | SendRefusal | None:
        path = f"{connection.account['page_id']}/message_attachments"
        return await social.upload_file(connection, path, type, file)

    async def fetch_media(self, connection: ChannelAccount, media: InboundMedia, max_bytes: int) -> tuple[str, bytes]:
        return await meta.fetch_media(connection, media, max_bytes)

    def confirm(self, credentials: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        return meta.confirm(credentials, query)

    def check_callback(self, credentials: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> None:
        meta.check_signature(credentials, headers, body)

    def read_callback(self, account: Mapping[str, str], body: bytes) -> Sequence[Item]:
        return social_callbacks.parse_callback(account["page_id"], PSID.name, body)


def _path(connection: ChannelAccount) -> str:
    return f"{connection.account['page_id']}/messages"


def build_link(content: Content) -> dict[str, Any] | None:
    """A link button; None for other content, and for a text that is too long beside one."""
    if not isinstance(content, LinkButton) or len(content.body) > LONGEST_LINK_BODY:
        return None
    button = {"type": "web_url", "url": content.url, "title": content.display_text}
    payload = {"template_type": "button", "text": content.body, "buttons": [button]}
    return {"attachment": {"type": "template", "payload": payload}}


MESSENGER = Messenger()

CHANNELS: Sequence[Channel] = (MESSENGER,)
