"""Uploads a file, so that messages can name it by an id instead of a URL. The id works for 30 days."""

import aiohttp

from sapa.messaging.channels import meta
from sapa.messaging.channels.interface import ChannelAccount, SendRefusal
from sapa.messaging.channels.reading import parse_json, text
from sapa.messaging.channels.whatsapp.errors import classify
from sapa.outbound.client import Unclear


async def upload(connection: ChannelAccount, filename: str, mime_type: str, content: bytes) -> str | SendRefusal:
    form = aiohttp.FormData()
    form.add_field("messaging_product", "whatsapp")
    form.add_field("type", mime_type)
    form.add_field("file", content, filename=filename, content_type=mime_type)
    url = f"{connection.address}/{connection.account['phone_number_id']}/media"
    response = await connection.client.call(
        "POST", url, headers=meta.authorize(connection), form=form, seconds=meta.FILE_SECONDS
    )
    if refused := meta.read_refusal(response, classify):
        return refused
    id = text(parse_json(response.body), "id")
    if id is None:
        raise Unclear("the channel took the file but returned no id")
    return id
