"""The Graph API shared by WhatsApp, Messenger and Instagram: calls, errors, verification, signatures."""

import hmac
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from sapa.messaging.channels.interface import (
    BadAccount,
    ChannelAccount,
    ErrorMeaning,
    InboundMedia,
    SendRefusal,
)
from sapa.messaging.channels.reading import Node, get, node, parse_json, text
from sapa.outbound.client import Form, NotSent, ProviderResponse, Unclear
from sapa.values.provider_accounts import BadSignature

FILE_SECONDS = 40.0
"""Large files take longer than API calls."""
UPLOAD_SECONDS = 60.0
MAX_CALLBACK_BYTES = 4 * 1_048_576

MAX_RETRY_AFTER = 86_400.0
NO_SUCH_OBJECT = 33
"""The subcode of an unknown object or path."""

_without_code = re.compile(r"\A\(#?[0-9]+\)\s*").sub


class GraphError(Struct, frozen=True):
    """An error of the Graph API."""

    code: int
    subcode: int
    message: str
    details: str
    is_transient: bool


async def post(connection: ChannelAccount, path: str, body: Any) -> ProviderResponse:
    headers = {**authorize(connection), "content-type": "application/json"}
    content = msgspec.json.encode(body)
    return await connection.client.call("POST", f"{connection.address}/{path}", headers=headers, content=content)


async def get_node(connection: ChannelAccount, path: str, **params: str) -> Node:
    """An object of the account; raises BadAccount if the channel refuses access."""
    url = f"{connection.address}/{path}"
    response = await connection.client.call("GET", url, headers=authorize(connection), params=params)
    return read_node(response)


def read_node(response: ProviderResponse) -> Node:
    found = parse_json(response.body)
    if response.status >= 500 or not isinstance(found, dict):
        raise Unclear(f"the channel answered {response.status} without an error")
    if response.status >= 400 or "error" in found:
        graph_error = parse_graph_error(found)
        raise BadAccount(f"({graph_error.code}) {describe(graph_error)}")
    return found


def authorize(connection: ChannelAccount) -> dict[str, str]:
    """Sends the token in a header: URLs end up in logs."""
    return {"authorization": f"Bearer {connection.credentials['access_token']}"}


def parse_graph_error(found: Any) -> GraphError:
    error = node(found, "error")
    return GraphError(
        code=_number(error.get("code")),
        subcode=_number(error.get("error_subcode")),
        message=text(error, "message") or text(error, "title") or "",
        details=text(error, "error_data", "details") or text(error, "error_user_msg") or "",
        is_transient=error.get("is_transient") is True,
    )


def describe(graph_error: GraphError) -> str:
    """The reason, without its code, which is reported beside it."""
    reason = _without_code("", graph_error.details or graph_error.message)
    return reason or "the channel gave no reason"


def read_refusal(response: ProviderResponse, classify: Callable[[GraphError], ErrorMeaning]) -> SendRefusal | None:
    """None if the channel accepted the request. Raises Unclear if that is not certain."""
    found = parse_json(response.body)
    if response.status < 300 and isinstance(found, dict) and "error" not in found:
        return None
    if not isinstance(get(found, "error"), dict):
        raise Unclear(f"the channel answered {response.status} with a body that cannot be parsed")
    graph_error = parse_graph_error(found)
    meaning = classify(graph_error)
    if response.status >= 500 and not (graph_error.code and meaning.is_definite):
        raise Unclear(f"the channel answered {response.status}: {describe(graph_error)}")
    retry_after = find_retry_after(response, meaning)
    return SendRefusal(str(graph_error.code), describe(graph_error), meaning.category, retry_after)


def find_retry_after(response: ProviderResponse, meaning: ErrorMeaning) -> float | None:
    """The usual pause, or a longer one that the channel asks for; None if a retry is pointless."""
    header = response.headers.get("retry-after", "")
    if meaning.retry_after is None or not (header.isascii() and header.isdigit()):
        return meaning.retry_after
    return max(meaning.retry_after, min(float(header), MAX_RETRY_AFTER))


async def upload(
    connection: ChannelAccount,
    path: str,
    form: Form,
    id_field: str,
    classify: Callable[[GraphError], ErrorMeaning],
    *,
    may_lack_edge: bool = False,
) -> str | SendRefusal | None:
    """The id of the uploaded file; with `may_lack_edge`, None if the API has no such path."""
    url = f"{connection.address}/{path}"
    try:
        response = await connection.client.call(
            "POST", url, headers=authorize(connection), form=form, seconds=UPLOAD_SECONDS
        )
        if refused := read_refusal(response, classify):
            return None if may_lack_edge and _lacks_edge(response) else refused
    except Unclear as error:
        raise NotSent(f"the file could not be uploaded: {error}") from error
    id = text(parse_json(response.body), id_field)
    return id or SendRefusal("media", "The channel accepted the file but returned no id.", "media")


def _lacks_edge(response: ProviderResponse) -> bool:
    graph_error = parse_graph_error(parse_json(response.body))
    return graph_error.code == 100 and (graph_error.subcode == NO_SUCH_OBJECT or "Unsupported" in graph_error.message)


def confirm(credentials: Mapping[str, str], query: Mapping[str, str]) -> str | None:
    """The challenge, if the verify token matches."""
    expected, received = credentials.get("verify_token") or "", query.get("hub.verify_token") or ""
    is_valid = bool(expected) and hmac.compare_digest(expected.encode(), received.encode("utf-8", "surrogatepass"))
    return query.get("hub.challenge") if is_valid and query.get("hub.mode") == "subscribe" else None


def sign(secret: str, body: bytes) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, sha256).hexdigest()


def check_signature(credentials: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> None:
    """Checks the raw bytes: the same JSON encoded again would have another signature."""
    secret, received = credentials.get("app_secret") or "", headers.get("x-hub-signature-256") or ""
    if not secret or not hmac.compare_digest(sign(secret, body).encode(), received.encode("utf-8", "surrogatepass")):
        raise BadSignature


async def fetch_media(connection: ChannelAccount, media: InboundMedia, max_bytes: int) -> tuple[str, bytes]:
    """Fetches by URL; without one, asks the channel for the URL of the media id."""
    if media.media_id is None:
        if media.url is None:
            raise Unclear("the channel sent neither an id nor a URL of the file")
        return await download(connection, media.url, media.mime_type, max_bytes, {})
    found = await get_node(connection, media.media_id)
    url = text(found, "url")
    if url is None:
        raise Unclear("the channel returned no URL for the file")
    return await download(connection, url, text(found, "mime_type"), max_bytes, authorize(connection))


async def download(
    connection: ChannelAccount, url: str, mime_type: str | None, max_bytes: int, headers: Mapping[str, str]
) -> tuple[str, bytes]:
    """The channel's own server is called directly, any other host through the guard."""
    if _place(url) == _place(connection.address):
        response = await connection.client.call("GET", url, headers=headers, max_bytes=max_bytes, seconds=FILE_SECONDS)
    else:
        response = await connection.client.fetch(url, max_bytes, headers=headers, seconds=FILE_SECONDS)
    if response.status != 200:
        raise Unclear(f"the channel answered {response.status} instead of the file")
    content_type = response.headers.get("content-type", "application/octet-stream").partition(";")[0]
    return mime_type or content_type, response.body


def _place(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
