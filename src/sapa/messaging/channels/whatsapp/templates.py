"""Templates of a WhatsApp business account: list, create, edit, delete."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from sapa.messaging.channels import meta
from sapa.messaging.channels.abilities import ChannelTemplate, NewTemplate
from sapa.messaging.channels.interface import ChannelAccount, SendRefusal
from sapa.messaging.channels.reading import nodes, parse_json, text
from sapa.messaging.channels.whatsapp.errors import classify
from sapa.messaging.channels.whatsapp.samples import upload_samples
from sapa.messaging.channels.whatsapp.template_creation import build_template
from sapa.messaging.channels.whatsapp.template_parsing import parse_category, parse_template
from sapa.outbound.client import ProviderResponse, Unclear

FIELDS = (
    "name,language,status,category,components,parameter_format,quality_score,rejected_reason,sub_category,"
    "message_send_ttl_seconds"
)
EDITABLE = ("category", "parameter_format", "components", "message_send_ttl_seconds")
PAGE = "100"
MAX_PAGES = 100
_NOT_FOUND = {132001, 2593002}
"""A code, and a subcode of a code that also has other meanings."""


async def list_templates(connection: ChannelAccount) -> Sequence[ChannelTemplate]:
    """Reads all pages. The next page is requested by its cursor, never by the URL in the response. Raises Unclear for a
    list that may not be complete: templates that it lacks would be deleted."""
    found: list[ChannelTemplate] = []
    after: str | None = None
    for _ in range(MAX_PAGES):
        params = {"fields": FIELDS, "limit": PAGE, **({"after": after} if after else {})}
        page = await meta.get_node(connection, _path(connection), **params)
        if not isinstance(page.get("data"), list):
            raise Unclear("the channel answered without a list of templates")
        found += [template for each in nodes(page, "data") if (template := parse_template(each))]
        if not text(page, "paging", "next"):
            return found
        after = text(page, "paging", "cursors", "after")
        if after is None:
            raise Unclear("the channel's list of templates goes on without a cursor")
    raise Unclear("the channel's list of templates does not end")


async def submit_template(connection: ChannelAccount, template: NewTemplate) -> ChannelTemplate | SendRefusal:
    body = await _build(connection, template)
    if isinstance(body, SendRefusal):
        return body
    return _read_decision(await meta.post(connection, _path(connection), body), template)


async def edit_template(connection: ChannelAccount, id: str, template: NewTemplate) -> ChannelTemplate | SendRefusal:
    """The name and the language stay; the answer has no status, because the review starts again."""
    body = await _build(connection, template)
    if isinstance(body, SendRefusal):
        return body
    changes = {name: body[name] for name in EDITABLE if name in body}
    decided = _read_decision(await meta.post(connection, id, changes), template)
    return decided if isinstance(decided, SendRefusal) else replace(decided, id=id)


async def delete_template(connection: ChannelAccount, name: str, id: str | None) -> SendRefusal | None:
    url = f"{connection.address}/{_path(connection)}"
    params = {"name": name, **({"hsm_id": id} if id and id.isdigit() else {})}
    response = await connection.client.call("DELETE", url, headers=meta.authorize(connection), params=params)
    refused = meta.read_refusal(response, classify)
    graph_error = meta.parse_graph_error(parse_json(response.body))
    is_missing = response.status == 404 or not _NOT_FOUND.isdisjoint({graph_error.code, graph_error.subcode})
    return None if refused is None or is_missing else refused


async def _build(connection: ChannelAccount, template: NewTemplate) -> dict[str, Any] | SendRefusal:
    """Samples of files are uploaded first: the request names them by their handles."""
    samples = await upload_samples(connection, template.content)
    return samples if isinstance(samples, SendRefusal) else build_template(template, samples)


def _read_decision(response: ProviderResponse, template: NewTemplate) -> ChannelTemplate | SendRefusal:
    """The channel may choose another category."""
    if refused := meta.read_refusal(response, classify):
        return refused
    found = parse_json(response.body)
    category = parse_category(text(found, "category")) or template.content.category
    return ChannelTemplate(
        name=template.name,
        language=template.language,
        status=text(found, "status") or "PENDING",
        content=replace(template.content, category=category),
        id=text(found, "id"),
    )


def _path(connection: ChannelAccount) -> str:
    return f"{connection.account['waba_id']}/message_templates"
