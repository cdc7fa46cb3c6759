"""Uploads the files that show reviewers what a template's header will look like."""

import base64
from collections.abc import Mapping
from typing import Any

from sapa.messaging.channels import meta
from sapa.messaging.channels.interface import ChannelAccount, SendRefusal
from sapa.messaging.channels.reading import parse_json, text
from sapa.messaging.channels.template_content import MEDIA_HEADERS, Header, TemplateContent
from sapa.messaging.channels.whatsapp.errors import classify
from sapa.outbound.client import NotSent, Unclear

MAX_BYTES: Mapping[str, int] = {"image": 5 * 1_048_576, "video": 16 * 1_048_576, "document": 16 * 1_048_576}
TYPES: Mapping[str, str] = {"image": "image/jpeg", "video": "video/mp4", "document": "application/pdf"}
"""If the server of the sample does not say."""

_PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

Samples = Mapping[str, str]
"""The handles of uploaded files, by their URLs."""


async def upload_samples(connection: ChannelAccount, content: TemplateContent) -> Samples | SendRefusal:
    """Uploads each file once."""
    handles: dict[str, str] = {}
    for url, type in list_samples(content).items():
        handle = await _upload(connection, url, type)
        if isinstance(handle, SendRefusal):
            return handle
        handles[url] = handle
    return handles


def list_samples(content: TemplateContent) -> Mapping[str, str]:
    """The URLs of all samples, with the types of their headers."""
    examples = content.examples
    headers: list[tuple[Header | None, str | None]] = [(content.header, examples.header if examples else None)]
    if examples and examples.cards:
        pairs = zip(content.cards, examples.cards, strict=False)
        headers += [(card.header, example.header) for card, example in pairs]
    return {url: header.type for header, url in headers if url and header and header.type in MEDIA_HEADERS}


async def _upload(connection: ChannelAccount, url: str, type: str) -> str | SendRefusal:
    """An upload has two calls: the first opens a session, the second sends the bytes."""
    file = await _fetch(connection, url, type)
    if isinstance(file, SendRefusal):
        return file
    mime_type, content = file
    params = {"file_length": str(len(content)), "file_type": mime_type, "file_name": f"sample-{type}"}
    opened = await connection.client.call(
        "POST", f"{connection.address}/app/uploads", headers=meta.authorize(connection), params=params
    )
    if refused := meta.read_refusal(opened, classify):
        return refused
    session = text(parse_json(opened.body), "id")
    if session is None:
        raise Unclear("the channel opened an upload without an id")
    headers = {"authorization": f"OAuth {connection.credentials['access_token']}", "file_offset": "0"}
    sent = await connection.client.call(
        "POST", f"{connection.address}/{session}", headers=headers, content=content, seconds=meta.FILE_SECONDS
    )
    if refused := meta.read_refusal(sent, classify):
        return refused
    return _read_handle(parse_json(sent.body))


def _read_handle(found: Any) -> str:
    handle = text(found, "h")
    if handle is None:
        raise Unclear("the channel took the sample but returned no handle")
    return handle


async def _fetch(connection: ChannelAccount, url: str, type: str) -> tuple[str, bytes] | SendRefusal:
    """An internal server gets nothing from outside: a built-in picture replaces the file at the URL."""
    if connection.is_internal:
        return TYPES[type], _PICTURE
    try:
        response = await connection.client.fetch(url, MAX_BYTES[type], seconds=meta.FILE_SECONDS)
    except (NotSent, Unclear) as error:
        return SendRefusal("media", f"The sample at {url} could not be fetched: {error}.", "media")
    if response.status != 200:
        return SendRefusal("media", f"There is no sample at {url} (status {response.status}).", "media")
    content_type = response.headers.get("content-type", "").partition(";")[0].strip()
    return content_type or TYPES[type], response.body
