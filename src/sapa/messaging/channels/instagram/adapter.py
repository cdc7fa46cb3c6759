"""Instagram: direct messages of a professional account."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from sapa.messaging.channels import meta, social, social_callbacks
from sapa.messaging.channels.files import FileRule, OutgoingFile
from sapa.messaging.channels.guide import ChannelGuide, GuideStep
from sapa.messaging.channels.identities import build_parser
from sapa.messaging.channels.interface import (
    BadAccount,
    Capabilities,
    Channel,
    ChannelAccount,
    Identity,
    IdentityKind,
    InboundMedia,
    Item,
    MediaType,
    OutgoingMessage,
    SendReceipt,
    SendRefusal,
    Source,
)
from sapa.messaging.channels.reading import text
from sapa.values.provider_accounts import AccountField

IGSID = IdentityKind("igsid", build_parser(social.SCOPED_ID, "must be the id by which Instagram knows the customer"))

GUIDE = ChannelGuide(
    (
        GuideStep(
            "What you need",
            "An Instagram account of the type business or creator that allows access to its messages, and a "
            "developer account at Meta. This server must have a public https address.",
        ),
        GuideStep(
            "The app and the token",
            "At developers.facebook.com create an app with the use case Instagram. Use cases > Customize > "
            "API setup with Instagram login has the app secret and generates the token.",
            ("app_secret", "access_token"),
        ),
    ),
    "On the same page enter the callback address and the verify token, and subscribe to messages.",
    "instagram",
)


class Instagram:
    source = Source.PHOTO_SOCIAL
    label = "Instagram"
    names: Sequence[str] = ("photo_social",)
    own_fields: Sequence[str] = ()
    upload_seconds = social.UPLOAD_SECONDS
    address = "https://graph.instagram.com/v22.0"
    guide = GUIDE
    fields: Sequence[AccountField] = (
        AccountField(
            "instagram_id", "Id of the professional account (user_id)", is_secret=False, pattern=r"[0-9]{1,40}"
        ),
        AccountField("access_token", "Access token"),
        AccountField("app_secret", "App secret"),
        AccountField("verify_token", "Verify token of the callback", is_required=False, is_generated=True),
    )
    capabilities = Capabilities(
        sends=frozenset({"message", "template", "media", "interactive"}),
        files={
            "image": FileRule(8 * social.MB, frozenset({"image/jpeg", "image/png", "image/gif"})),
            "video": FileRule(
                25 * social.MB,
                frozenset({"video/mp4", "video/ogg", "video/x-msvideo", "video/quicktime", "video/webm"}),
            ),
            "audio": FileRule(25 * social.MB, frozenset({"audio/aac", "audio/mp4", "audio/wav"})),
        },
        longest_text=1000,
        window=timedelta(hours=24),
        reports=frozenset({"sent", "read", "failed"}),
        identities=(IGSID,),
        per_second=300,
        max_callback_bytes=meta.MAX_CALLBACK_BYTES,
        media_per_second=10,
        has_quotes=True,
        longest_link_body=0,
    )

    async def verify(self, connection: ChannelAccount) -> None:
        """Callbacks carry the account's user_id: with another id all of them would be skipped."""
        found = await meta.get_node(connection, "me", fields="user_id,username")
        token_account, expected = text(found, "user_id"), connection.account["instagram_id"]
        if token_account != expected:
            raise BadAccount(f"the token belongs to the account {token_account}, not to {expected}")

    async def send(self, connection: ChannelAccount, message: OutgoingMessage) -> SendReceipt | SendRefusal:
        return await social.send(connection, _path(connection), message)

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
        path = f"{connection.account['instagram_id']}/message_attachments"
        return await social.upload_file(connection, path, type, file, platform="instagram")

    async def fetch_media(self, connection: ChannelAccount, media: InboundMedia, max_bytes: int) -> tuple[str, bytes]:
        return await meta.fetch_media(connection, media, max_bytes)

    def confirm(self, credentials: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        return meta.confirm(credentials, query)

    def check_callback(self, credentials: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> None:
        meta.check_signature(credentials, headers, body)

    def read_callback(self, account: Mapping[str, str], body: bytes) -> Sequence[Item]:
        return social_callbacks.parse_callback(account["instagram_id"], IGSID.name, body)


def _path(connection: ChannelAccount) -> str:
    return f"{connection.account['instagram_id']}/messages"


INSTAGRAM = Instagram()

CHANNELS: Sequence[Channel] = (INSTAGRAM,)
