"""Creates, changes and deletes templates."""

import msgspec
from msgspec import UNSET, Raw, UnsetType

from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.messaging.channels.abilities import ChannelTemplate
from sapa.messaging.channels.interface import TemplateVerdict
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.templates import queries
from sapa.messaging.templates.queries import Content
from sapa.messaging.templates.text import list_placeholders, suggest
from sapa.messaging.templates.types import (
    TEMPLATE_ID,
    Approval,
    Header,
    Template,
    TemplateButton,
    TemplateIn,
    TemplateNotFound,
    TemplateOnChannel,
    TemplatePatch,
)
from sapa.values.company import Company
from sapa.values.json import encode

MAX_SUGGESTED_FROM = 500
APPROVALS: dict[str, Approval] = {
    "APPROVED": "APPROVED",
    "PENDING": "PENDING",
    "IN_APPEAL": "PENDING",
    "REJECTED": "REJECTED",
    "PAUSED": "PAUSED",
    "LIMIT_EXCEEDED": "PAUSED",
    "FLAGGED": "APPROVED",
    "REINSTATED": "APPROVED",
    "DISABLED": "DISABLED",
    "DELETED": "DISABLED",
    "PENDING_DELETION": "DISABLED",
    "ARCHIVED": "DISABLED",
}
"""Maps the channel's statuses to ours. An unknown status changes nothing."""


async def create(tx: Tx, company: Company, body: TemplateIn) -> Template:
    """Approved at once in a test environment, otherwise when the channel approves it."""
    header = parse_header(body.header)
    _check_line("name", body.name)
    _check_line("language", body.language)
    _check(body.body, header, body.buttons)
    content = Content(
        body.category,
        None if header is None else encode(header),
        body.body,
        body.footer,
        encode(body.buttons),
        _first_status(company),
        None,
        None,
    )
    source = body.source or ("AUTH" if body.category == "AUTHENTICATION" else "CRM")
    return await queries.insert_template(tx, company.id, TEMPLATE_ID.new(), body.name, body.language, source, content)


async def update(tx: Tx, company: Company, id: str, patch: TemplatePatch) -> Template:
    """Only while no channel has it: a channel keeps what was submitted."""
    template = await queries.lock_template(tx, company.id, id)
    if await queries.find_provider_id(tx, company.id, id) is not None:
        raise TemplateOnChannel
    content = _revise(company, template, patch)
    return await queries.update_template(tx, company.id, id, content)


async def delete(tx: Tx, company: Company, id: str) -> None:
    await queries.delete_template(tx, company.id, id)


async def apply_verdict(tx: Tx, company: Company, verdict: TemplateVerdict) -> Template | None:
    """Stores a channel's decision; None if the template or the decision is unknown."""
    status = APPROVALS.get(verdict.status.upper())
    if status is None:
        return None
    reason = None if verdict.reason in {None, "", "NONE"} else verdict.reason
    return await queries.decide(tx, company.id, verdict.name, verdict.language, status, reason, None)


async def adopt(tx: Tx, company: Company, found: ChannelTemplate) -> Template | None:
    """Stores a template of the channel, which may have been created there."""
    status = APPROVALS.get(found.status.upper())
    if status is None:
        return None
    existing = await queries.decide(tx, company.id, found.name, found.language, status, found.reason, found.id)
    if existing is not None:
        return existing
    content = _read(found, status)
    if content is None:
        return None
    source = "AUTH" if content.category == "AUTHENTICATION" else "CRM"
    return await queries.insert_template(tx, company.id, TEMPLATE_ID.new(), found.name, found.language, source, content)


async def get_for_send(
    db: Connection, company: Company, name: str, source: str | None, language: str | None
) -> Template:
    """The requested language, else the first approved one."""
    candidates = await queries.list_by_name(db, company.id, name)
    fitting = [
        template
        for template in candidates
        if source in {None, template.source} and language in {None, template.language}
    ]
    if fitting:
        return fitting[0]
    if candidates:
        variants = ", ".join(f"{template.source} in {template.language}" for template in candidates)
        raise TemplateNotFound(f"The template {name} exists only as {variants}.")
    names = await queries.list_names(db, company.id, MAX_SUGGESTED_FROM)
    raise TemplateNotFound(f"There is no template called {name}.{suggest(name, names)}")


def _first_status(company: Company) -> Approval:
    return "PENDING" if get_environment(company).has_template_review else "APPROVED"


def parse_header(header: str | Header | None) -> Header | None:
    """A plain string is a text header."""
    return Header("text", header) if isinstance(header, str) else header


def _check_line(field: str, text: str) -> None:
    """In a pattern, `$` would accept a trailing line feed."""
    if text.endswith("\n"):
        raise Invalid.field(field, "must not end with a line feed")


def _check(body: str, header: Header | None, buttons: list[TemplateButton]) -> None:
    list_placeholders(body)
    if header is not None and (header.type == "text") != (header.text is not None):
        raise Invalid.field(
            "header.text", "is required for a header of the type text, and must be absent for any other"
        )
    if header is not None and header.text and "{{" in header.text:
        raise Invalid.field("header.text", "must not have parameters; only the body can have them")
    for number, button in enumerate(buttons):
        _check_button(f"buttons[{number}]", button)


def _check_button(field: str, button: TemplateButton) -> None:
    if (button.type == "url") != bool(button.url):
        raise Invalid.field(
            f"{field}.url", "is required for a button of the type url, and must be absent for any other"
        )
    if (button.type == "phone_number") != bool(button.phone_number):
        raise Invalid.field(
            f"{field}.phoneNumber",
            "is required for a button of the type phone_number, and must be absent for any other",
        )
    if button.url and (not button.url.startswith(("https://", "http://")) or "{{" in button.url):
        raise Invalid.field(f"{field}.url", "must be a complete URL without parameters")


def _revise(company: Company, template: Template, patch: TemplatePatch) -> Content:
    header: bytes | Raw | None = template.header
    buttons: bytes | Raw = template.buttons
    body = template.body if isinstance(patch.body, UnsetType) else patch.body
    new_header = None if isinstance(patch.header, UnsetType) else parse_header(patch.header)
    if patch.header is not UNSET:
        header = None if new_header is None else encode(new_header)
    if not isinstance(patch.buttons, UnsetType):
        buttons = encode(patch.buttons)
    _check(body, new_header, [] if isinstance(patch.buttons, UnsetType) else patch.buttons)
    return Content(
        template.category if isinstance(patch.category, UnsetType) else patch.category,
        header,
        body,
        template.footer if isinstance(patch.footer, UnsetType) else patch.footer,
        buttons,
        _first_status(company),
        None,
        None,
    )


def _read(found: ChannelTemplate, status: Approval) -> Content | None:
    """None for a template that cannot be sent: without a body, or with named parameters or parameters outside the
    body."""
    parts = {str(part.get("type", "")).upper(): part for part in found.components}
    body = str(parts.get("BODY", {}).get("text", ""))
    category = found.category.upper()
    if not body or category not in {"UTILITY", "MARKETING", "AUTHENTICATION"}:
        return None
    header = _read_header(parts.get("HEADER"))
    buttons = [button for part in parts.get("BUTTONS", {}).get("buttons", []) if (button := _read_button(part))]
    try:
        _check(body, header, buttons)
        msgspec.convert(msgspec.to_builtins([header, buttons]), tuple[Header | None, list[TemplateButton]])
    except (Invalid, msgspec.ValidationError):
        return None
    footer = parts.get("FOOTER", {}).get("text")
    return Content(
        category,
        None if header is None else encode(header),
        body,
        str(footer) if footer else None,
        encode(buttons),
        status,
        found.reason,
        found.id or found.name,
    )


def _read_header(part: object) -> Header | None:
    if not isinstance(part, dict):
        return None
    match str(part.get("format", "")).lower():
        case "text":
            return Header("text", str(part.get("text", "")))
        case "image" | "video" | "document" as kind:
            return Header(kind)
        case _:
            return None


def _read_button(part: object) -> TemplateButton | None:
    if not isinstance(part, dict):
        return None
    text = str(part.get("text", ""))
    match str(part.get("type", "")).lower():
        case "quick_reply":
            return TemplateButton("quick_reply", text)
        case "url":
            return TemplateButton("url", text, url=str(part.get("url", "")))
        case "phone_number":
            return TemplateButton("phone_number", text, phone_number=str(part.get("phone_number", "")))
        case _:
            return None
