"""Templates of a WhatsApp business account."""

from collections.abc import Mapping, Sequence
from typing import Any

from sapa.messaging.channels import meta
from sapa.messaging.channels.abilities import ChannelTemplate, NewTemplate
from sapa.messaging.channels.interface import ChannelAccount, SendRefusal
from sapa.messaging.channels.reading import Node, nodes, parse_json, text
from sapa.messaging.channels.whatsapp.errors import classify
from sapa.outbound.client import Unclear

FIELDS = "name,language,category,status,components,rejected_reason"
PAGE = "100"
MAX_PAGES = 100
_NOT_FOUND = {132001, 2593002}
"""A code, and a subcode of a code that also has other meanings."""
_BUTTONS = {"quick_reply": "QUICK_REPLY", "url": "URL", "phone_number": "PHONE_NUMBER"}


async def list_templates(connection: ChannelAccount) -> Sequence[ChannelTemplate]:
    """Reads all pages. The next page is requested by its cursor, never by the URL in the response."""
    found: list[ChannelTemplate] = []
    after: str | None = None
    for _ in range(MAX_PAGES):
        params = {"fields": FIELDS, "limit": PAGE, **({"after": after} if after else {})}
        page = await meta.get_node(connection, _path(connection), **params)
        found += [template for each in nodes(page, "data") if (template := parse_template(each))]
        after = text(page, "paging", "cursors", "after") if text(page, "paging", "next") else None
        if after is None:
            return found
    raise Unclear("the channel's list of templates does not end")


async def submit_template(connection: ChannelAccount, template: NewTemplate) -> ChannelTemplate | SendRefusal:
    body = build_template(template)
    response = await meta.post(connection, _path(connection), body)
    if refused := meta.read_refusal(response, classify):
        return refused
    found = parse_json(response.body)
    return ChannelTemplate(
        name=template.name,
        language=template.language,
        category=text(found, "category") or template.category,
        status=text(found, "status") or "PENDING",
        components=body["components"],
        id=text(found, "id"),
    )


async def delete_template(connection: ChannelAccount, name: str) -> SendRefusal | None:
    url = f"{connection.address}/{_path(connection)}"
    response = await connection.client.call("DELETE", url, headers=meta.authorize(connection), params={"name": name})
    refused = meta.read_refusal(response, classify)
    graph_error = meta.parse_graph_error(parse_json(response.body))
    is_missing = response.status == 404 or not _NOT_FOUND.isdisjoint({graph_error.code, graph_error.subcode})
    return None if refused is None or is_missing else refused


def parse_template(found: Node) -> ChannelTemplate | None:
    name, language = text(found, "name"), text(found, "language")
    if name is None or language is None:
        return None
    reason = text(found, "rejected_reason")
    return ChannelTemplate(
        name=name,
        language=language,
        category=text(found, "category") or "",
        status=text(found, "status") or "PENDING",
        components=nodes(found, "components"),
        id=text(found, "id"),
        reason=None if reason == "NONE" else reason,
    )


def build_template(template: NewTemplate) -> dict[str, Any]:
    components: list[dict[str, Any]] = []
    if template.header:
        components.append({"type": "HEADER", "format": "TEXT", "text": template.header})
    components.append(_body(template))
    if template.footer:
        components.append({"type": "FOOTER", "text": template.footer})
    if template.buttons:
        components.append({"type": "BUTTONS", "buttons": [_button(button) for button in template.buttons]})
    return {
        "name": template.name,
        "language": template.language,
        "category": template.category,
        "parameter_format": "POSITIONAL",
        "components": components,
    }


def _body(template: NewTemplate) -> dict[str, Any]:
    example = {"example": {"body_text": [list(template.examples)]}} if template.examples else {}
    return {"type": "BODY", "text": template.body, **example}


def _button(button: Mapping[str, Any]) -> dict[str, Any]:
    type = str(button.get("type", "QUICK_REPLY"))
    return {**button, "type": _BUTTONS.get(type.lower(), type)}


def _path(connection: ChannelAccount) -> str:
    return f"{connection.account['waba_id']}/message_templates"
