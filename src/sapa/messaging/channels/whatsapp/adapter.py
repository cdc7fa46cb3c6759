"""WhatsApp: the Cloud API, and numbers that are also used on a phone."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import get_args

import msgspec

from sapa.messaging.channels import meta
from sapa.messaging.channels.abilities import ChannelTemplate, NewTemplate
from sapa.messaging.channels.account_reports import AccountReport
from sapa.messaging.channels.files import OutgoingFile
from sapa.messaging.channels.guide import ChannelGuide, GuideStep
from sapa.messaging.channels.identities import PHONE, WA_ID
from sapa.messaging.channels.interface import (
    BadAccount,
    Capabilities,
    Channel,
    ChannelAccount,
    Identity,
    InboundMedia,
    Interactive,
    Item,
    MediaType,
    OutgoingMessage,
    SendReceipt,
    SendRefusal,
    Source,
)
from sapa.messaging.channels.reading import text
from sapa.messaging.channels.whatsapp import ratings, templates
from sapa.messaging.channels.whatsapp.callbacks import parse_callback
from sapa.messaging.channels.whatsapp.calls import build_message, build_reaction, build_read_mark, parse_sent
from sapa.messaging.channels.whatsapp.errors import classify
from sapa.messaging.channels.whatsapp.media import FILE_RULES, UPLOAD_SECONDS, upload_file
from sapa.messaging.channels.whatsapp.people import BSUID, only_digits
from sapa.values.provider_accounts import AccountField

NUMBER = r"[0-9]{1,40}"
CAPABILITIES = Capabilities(
    sends=frozenset({"message", "template", "media", "interactive"}),
    files=FILE_RULES,
    longest_text=4096,
    window=timedelta(hours=24),
    reports=frozenset({"sent", "delivered", "read", "failed"}),
    identities=(PHONE, WA_ID, BSUID),
    per_second=80,
    high_per_second=1_000,
    max_callback_bytes=meta.MAX_CALLBACK_BYTES,
    needs_approved_templates=True,
    longest_caption=1024,
    interactives=frozenset(get_args(Interactive)),
    has_choices=True,
    has_quotes=True,
    has_audio_captions=False,
)

GUIDE = ChannelGuide(
    (
        GuideStep(
            "What you need",
            "A business portfolio at Meta, and a phone number that is not in use on WhatsApp. This server "
            "must have a public https address.",
        ),
        GuideStep(
            "The app and the number",
            "At developers.facebook.com create an app with the use case WhatsApp and publish it. App settings "
            "> Basic has the app secret; Use cases > Customize > API Setup has the phone number ID and the "
            "WhatsApp Business Account ID.",
            ("app_secret", "phone_number_id", "waba_id"),
        ),
        GuideStep(
            "The token",
            "At business.facebook.com/settings add a system user, assign the app and the WhatsApp account to "
            "it, and generate a token that never expires, with whatsapp_business_messaging and "
            "whatsapp_business_management.",
            ("access_token",),
        ),
    ),
    "In the app open Use cases > Customize > Configuration. Enter the callback address and the verify token, "
    "and subscribe to messages.",
    "whatsapp",
)


class WhatsApp:
    """Both kinds of number use the same API. A number that is also used on a phone has a lower rate and sends
    echoes."""

    own_fields: Sequence[str] = ("phone_number",)
    template_owner_field = "waba_id"
    upload_seconds = UPLOAD_SECONDS
    address = "https://graph.facebook.com/v25.0"
    guide = GUIDE
    fields: Sequence[AccountField] = (
        AccountField("phone_number_id", "Phone number id", is_secret=False, pattern=NUMBER),
        AccountField("waba_id", "WhatsApp business account id", is_secret=False, pattern=NUMBER),
        AccountField(
            "phone_number", "Phone number", is_secret=False, pattern=r"\+[0-9]{6,15}",
            hint="With the country's code, such as +6281234567890.",
        ),
        AccountField("access_token", "Access token of a system user"),
        AccountField("app_secret", "App secret"),
        AccountField("verify_token", "Verify token of the callback", is_required=False, is_generated=True),
    )  # fmt: skip

    def __init__(self, source: Source, label: str, names: Sequence[str], capabilities: Capabilities) -> None:
        self.source = source
        self.label = label
        self.names = names
        self.capabilities = capabilities

    async def verify(self, connection: ChannelAccount) -> None:
        """Callbacks about the account name the number: with another one they would be skipped."""
        id, expected = connection.account["phone_number_id"], connection.account["phone_number"]
        found = await meta.get_node(connection, id, fields="id,display_phone_number")
        number = only_digits(text(found, "display_phone_number"))
        if number is not None and number != only_digits(expected):
            raise BadAccount(f"the id belongs to the number +{number}, not to {expected}")

    async def send(self, connection: ChannelAccount, message: OutgoingMessage) -> SendReceipt | SendRefusal:
        return parse_sent(await meta.post(connection, _path(connection), build_message(message)), message.to)

    async def upload_file(
        self, connection: ChannelAccount, type: MediaType, file: OutgoingFile
    ) -> str | SendRefusal | None:
        return await upload_file(connection, file)

    async def fetch_media(self, connection: ChannelAccount, media: InboundMedia, max_bytes: int) -> tuple[str, bytes]:
        return await meta.fetch_media(connection, media, max_bytes)

    def confirm(self, credentials: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        return meta.confirm(credentials, query)

    def check_callback(self, credentials: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> None:
        meta.check_signature(credentials, headers, body)

    def read_callback(self, account: Mapping[str, str], body: bytes) -> Sequence[Item]:
        return parse_callback(account, body)

    async def list_templates(self, connection: ChannelAccount) -> Sequence[ChannelTemplate]:
        return await templates.list_templates(connection)

    async def submit_template(self, connection: ChannelAccount, template: NewTemplate) -> ChannelTemplate | SendRefusal:
        return await templates.submit_template(connection, template)

    async def edit_template(
        self, connection: ChannelAccount, id: str, template: NewTemplate
    ) -> ChannelTemplate | SendRefusal:
        return await templates.edit_template(connection, id, template)

    async def delete_template(self, connection: ChannelAccount, name: str, id: str | None) -> SendRefusal | None:
        return await templates.delete_template(connection, name, id)

    async def react(
        self, connection: ChannelAccount, to: Identity, message_id: str, emoji: str | None
    ) -> SendRefusal | None:
        response = await meta.post(connection, _path(connection), build_reaction(to, message_id, emoji))
        return meta.read_refusal(response, classify)

    async def mark_read(
        self, connection: ChannelAccount, to: Identity, message_id: str, is_typing: bool
    ) -> SendRefusal | None:
        response = await meta.post(connection, _path(connection), build_read_mark(message_id, is_typing))
        return meta.read_refusal(response, classify)

    async def read_rating(self, connection: ChannelAccount) -> AccountReport:
        return await ratings.read_rating(connection)


def _path(connection: ChannelAccount) -> str:
    return f"{connection.account['phone_number_id']}/messages"


CLOUD = WhatsApp(Source.MSGAPP_CLOUD, "WhatsApp", ("msgapp", "msgapp_cloud_api"), CAPABILITIES)
COEXISTENCE = WhatsApp(
    Source.MSGAPP_COEX,
    "WhatsApp with the Business app",
    ("msgapp", "msgapp_coex"),
    msgspec.structs.replace(CAPABILITIES, per_second=20, high_per_second=None),
)

CHANNELS: Sequence[Channel] = (CLOUD, COEXISTENCE)
