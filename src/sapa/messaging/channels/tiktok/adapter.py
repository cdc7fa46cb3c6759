"""TikTok: direct messages of a business account."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from sapa.messaging.channels.abilities import Renewal
from sapa.messaging.channels.files import FileRule, OutgoingFile
from sapa.messaging.channels.guide import ChannelGuide, GuideStep
from sapa.messaging.channels.interface import (
    BadAccount,
    Capabilities,
    Channel,
    ChannelAccount,
    InboundMedia,
    Item,
    Media,
    MediaType,
    OutgoingMessage,
    SendReceipt,
    SendRefusal,
    Source,
)
from sapa.messaging.channels.meta import download
from sapa.messaging.channels.reading import text
from sapa.messaging.channels.tiktok.callbacks import CONVERSATION, check_signature, parse_callback
from sapa.messaging.channels.tiktok.calls import build_image, build_text, parse_data, parse_sent
from sapa.messaging.channels.tiktok.pictures import PICTURE, find_type
from sapa.outbound.client import AttachedFile, Form, NotSent, ProviderResponse, Unclear
from sapa.values.provider_accounts import AccountField

MAX_PICTURE_BYTES = 3 * 1_048_576
DAY = 86_400.0

GUIDE = ChannelGuide(
    (
        GuideStep(
            "What you need",
            "A TikTok business account that accepts messages from everybody, and a developer account at "
            "business-api.tiktok.com. This server must have a public https address.",
        ),
        GuideStep(
            "The app and the token",
            "In the portal create an app and ask for Business Messaging. Sign in with the account to get its tokens.",
            ("app_secret", "access_token"),
        ),
    ),
    "In the portal enter the callback address for messages.",
    "tiktok",
)


class TikTok:
    source = Source.SHORT_VIDEO
    label = "TikTok"
    names: Sequence[str] = ("short_video",)
    own_fields: Sequence[str] = ()
    upload_seconds = 0.0
    address = "https://business-api.tiktok.com/open_api/v1.3"
    guide = GUIDE
    fields: Sequence[AccountField] = (
        AccountField("business_id", "Business id (open_id)", is_secret=False),
        AccountField("client_key", "App id", is_secret=False),
        AccountField("access_token", "Access token"),
        AccountField("refresh_token", "Refresh token", is_required=False),
        AccountField("app_secret", "App secret"),
    )
    capabilities = Capabilities(
        sends=frozenset({"message", "media", "interactive"}),
        files={"image": FileRule(MAX_PICTURE_BYTES, frozenset({"image/jpeg", "image/png"}))},
        longest_text=6000,
        window=timedelta(hours=48),
        max_in_window=10,
        reports=frozenset({"sent", "read", "failed"}),
        identities=(CONVERSATION,),
        per_second=10,
        max_callback_bytes=1_048_576,
        has_captions=False,
        longest_link_body=0,
        has_quotes=True,
    )

    async def verify(self, connection: ChannelAccount) -> None:
        params = {"business_id": connection.account["business_id"], "fields": '["username","display_name"]'}
        found = parse_data(await _call(connection, "GET", "business/get/", params=params))
        if isinstance(found, SendRefusal):
            raise BadAccount(f"({found.code}) {found.reason}")

    async def send(self, connection: ChannelAccount, message: OutgoingMessage) -> SendReceipt | SendRefusal:
        business_id = connection.account["business_id"]
        if not isinstance(message.content, Media):
            return await _send(connection, build_text(business_id, message))
        media_id = message.content.channel_id or await _upload_from(connection, message.content.url)
        if isinstance(media_id, SendRefusal):
            return media_id
        return await _send(connection, build_image(business_id, message, media_id))

    async def upload_file(
        self, connection: ChannelAccount, type: MediaType, file: OutgoingFile
    ) -> str | SendRefusal | None:
        return await _upload(connection, b"".join([piece async for piece in file.read()]))

    async def fetch_media(self, connection: ChannelAccount, media: InboundMedia, max_bytes: int) -> tuple[str, bytes]:
        conversation_id, message_id, media_id = (media.media_id or "").split(" ")
        body = {
            "business_id": connection.account["business_id"],
            "conversation_id": conversation_id,
            "message_id": message_id,
            "media_id": media_id,
            "media_type": "IMAGE",
        }
        found = parse_data(await _call(connection, "POST", "business/message/media/download/", body))
        url = None if isinstance(found, SendRefusal) else text(found, "download_url")
        if url is None:
            raise Unclear("the channel returned no URL for the file")
        return await download(connection, url, None, max_bytes, {"x-user": connection.credentials["access_token"]})

    def confirm(self, credentials: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        return None

    def check_callback(self, credentials: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> None:
        check_signature(credentials.get("app_secret") or "", headers, body)

    def read_callback(self, account: Mapping[str, str], body: bytes) -> Sequence[Item]:
        return parse_callback(account, body)

    async def renew(self, connection: ChannelAccount) -> Renewal:
        """An access token lasts a day. The refresh token changes with each renewal."""
        body = {
            "client_id": connection.account["client_key"],
            "client_secret": connection.credentials["app_secret"],
            "grant_type": "refresh_token",
            "refresh_token": connection.credentials.get("refresh_token") or "",
        }
        found = parse_data(await _call(connection, "POST", "tt_user/oauth2/refresh_token/", body))
        if isinstance(found, SendRefusal):
            raise BadAccount(f"({found.code}) {found.reason}")
        names = ("access_token", "refresh_token")
        new = {name: value for name in names if (value := text(found, name)) is not None}
        if "access_token" not in new:
            raise Unclear("the channel returned no new token")
        seconds = found.get("expires_in")
        return Renewal({**connection.credentials, **new}, float(seconds) if isinstance(seconds, int) else DAY)


async def _call(
    connection: ChannelAccount, method: str, path: str, body: Any = None, params: Mapping[str, str] | None = None
) -> ProviderResponse:
    headers = {"access-token": connection.credentials["access_token"], "content-type": "application/json"}
    content = None if body is None else msgspec.json.encode(body)
    url = f"{connection.address}/{path}"
    return await connection.client.call(method, url, headers=headers, content=content, params=params)


async def _send(connection: ChannelAccount, body: dict[str, Any]) -> SendReceipt | SendRefusal:
    return parse_sent(await _call(connection, "POST", "business/message/send/", body))


async def _upload_from(connection: ChannelAccount, url: str) -> str | SendRefusal:
    """TikTok takes uploaded pictures, not links."""
    picture = await _fetch_picture(connection, url)
    return picture if isinstance(picture, SendRefusal) else await _upload(connection, picture)


async def _upload(connection: ChannelAccount, picture: bytes) -> str | SendRefusal:
    """An upload alone has no effect."""
    form: Form = {
        "business_id": connection.account["business_id"],
        "media_type": "IMAGE",
        "file": AttachedFile("picture", find_type(picture), picture, len(picture)),
    }
    url = f"{connection.address}/business/message/media/upload/"
    headers = {"access-token": connection.credentials["access_token"]}
    try:
        found = parse_data(await connection.client.call("POST", url, headers=headers, form=form))
    except Unclear as error:
        raise NotSent(str(error)) from error
    if isinstance(found, SendRefusal):
        return found
    return text(found, "media_id") or SendRefusal(
        "media", "The channel accepted the picture but returned no id.", "media"
    )


async def _fetch_picture(connection: ChannelAccount, url: str) -> bytes | SendRefusal:
    """An internal server gets nothing from outside: a built-in picture replaces the one at the URL."""
    if connection.is_internal:
        return PICTURE
    try:
        response = await connection.client.fetch(url, MAX_PICTURE_BYTES)
    except (NotSent, Unclear) as error:
        return SendRefusal("media", f"The picture could not be fetched: {error}.", "media")
    if response.status != 200 or find_type(response.body) is None:
        return SendRefusal("media", f"There is no JPEG or PNG at {url} (status {response.status}).", "media")
    return response.body


TIKTOK = TikTok()

CHANNELS: Sequence[Channel] = (TIKTOK,)
