"""Mail: sent through the company's own server, received on a hook as raw MIME."""

import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256

from sapa.messaging.channels.files import FileRule
from sapa.messaging.channels.guide import ChannelGuide, GuideStep
from sapa.messaging.channels.identities import EMAIL
from sapa.messaging.channels.interface import (
    MEDIA_TYPES,
    Capabilities,
    Channel,
    ChannelAccount,
    InboundMedia,
    Item,
    OutgoingMessage,
    SendDeferral,
    SendReceipt,
    SendRefusal,
    Source,
)
from sapa.messaging.channels.mail import submission
from sapa.messaging.channels.mail.authentication import AUTHORITY
from sapa.messaging.channels.mail.received import parse_callback
from sapa.outbound.client import Unclear
from sapa.values.provider_accounts import AccountField, BadSignature

SIGNATURE = "x-sapa-signature"
ADDRESS = r"[^@\s<>\",;:]+@[^@\s<>\",;:]+"


def _optional(name: str, label: str, pattern: str = r".*", hint: str = "") -> AccountField:
    return AccountField(name, label, is_secret=False, is_required=False, pattern=pattern, hint=hint)


GUIDE = ChannelGuide(
    (
        GuideStep(
            "What you need",
            "An email address, and the server that sends for it. To receive answers, a way to have mail "
            "posted to a web address. This server must have a public https address.",
        ),
        GuideStep(
            "The server that sends",
            "Your provider names the SMTP server, the port, the user and the password.",
            ("address", "smtp_host"),
        ),
    ),
    "Let the server of your domain post incoming mail to the callback address.",
    "mail",
)


class Mail:
    source = Source.MAIL
    label = "Mail"
    names: Sequence[str] = ("mail",)
    own_fields: Sequence[str] = ("address", "inbound_address")
    address = ""
    guide = GUIDE
    fields: Sequence[AccountField] = (
        AccountField("address", "Address to send from", is_secret=False, pattern=ADDRESS),
        AccountField("smtp_host", "Mail server", is_secret=False, pattern=r"[0-9A-Za-z.:-]{1,253}"),
        _optional("smtp_port", "Port of the mail server", r"[0-9]{1,5}", "If empty 587, or 465 for tls."),
        _optional("security", "Encryption", "starttls|tls|plain", "starttls, tls or plain. If empty, starttls."),
        _optional("username", "User name"),
        AccountField("password", "Password", is_required=False, destination=("smtp_host", "smtp_port", "security")),
        _optional("sender_name", "Sender name"),
        _optional("inbound_address", "Address whose mail is posted to the hook, including + suffixes", ADDRESS),
        _optional(
            "authentication_authority",
            "Name of the receiving mail server in its Authentication-Results headers",
            AUTHORITY,
        ),
        AccountField("hook_secret", "Secret that signs incoming mail", is_required=False),
    )
    capabilities = Capabilities(
        sends=frozenset({"message", "template", "media", "interactive"}),
        files=dict.fromkeys(MEDIA_TYPES, FileRule(100 * 1_048_576)),
        longest_text=100_000,
        window=None,
        reports=frozenset({"sent", "failed"}),
        identities=(EMAIL,),
        per_second=20,
        max_callback_bytes=32 * 1_048_576,
        longest_link_body=0,
        has_attachments=True,
        max_files=10,
        has_threads=True,
        has_quotes=True,
        has_unsubscribe_links=True,
        has_forgeable_senders=True,
    )

    def get_server(self, account: Mapping[str, str]) -> str:
        usual_port = 465 if account.get("security") == "tls" else 587
        return f"{account['smtp_host']}:{account.get('smtp_port') or usual_port}"

    async def verify(self, connection: ChannelAccount) -> None:
        await submission.verify(connection)

    async def send(
        self, connection: ChannelAccount, message: OutgoingMessage
    ) -> SendReceipt | SendRefusal | SendDeferral:
        return await submission.submit(connection, message)

    async def fetch_media(self, connection: ChannelAccount, media: InboundMedia, max_bytes: int) -> tuple[str, bytes]:
        """Attachments come with the mail."""
        if media.content is None or len(media.content) > max_bytes:
            raise Unclear("the file is no longer stored, or is too large")
        return media.mime_type or "application/octet-stream", media.content

    def confirm(self, credentials: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        return None

    def check_callback(self, credentials: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> None:
        """The hook's address is a secret already; the signature is optional."""
        secret, received = credentials.get("hook_secret") or "", headers.get(SIGNATURE) or ""
        if secret and not hmac.compare_digest(sign(secret, body).encode(), received.encode("utf-8", "surrogatepass")):
            raise BadSignature

    def read_callback(self, account: Mapping[str, str], body: bytes) -> Sequence[Item]:
        return parse_callback(account, body)


def sign(secret: str, body: bytes) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, sha256).hexdigest()


MAIL = Mail()

CHANNELS: Sequence[Channel] = (MAIL,)
