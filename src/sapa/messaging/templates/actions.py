"""Creates, changes and deletes templates, and follows what their channel decides."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.messaging.channels.abilities import ChannelTemplate
from sapa.messaging.channels.template_content import Authentication, Header, TemplateContent
from sapa.messaging.channels.template_verdicts import TemplateVerdict
from sapa.messaging.templates import queries
from sapa.messaging.templates.authentication import build_text
from sapa.messaging.templates.queries import ChannelState
from sapa.messaging.templates.text import parse_content, suggest
from sapa.messaging.templates.types import (
    TEMPLATE_ID,
    Approval,
    Template,
    TemplateIn,
    TemplateNotFound,
    TemplateNotSendable,
    TemplateOnChannel,
    TemplatePatch,
)
from sapa.messaging.templates.validation import check_content
from sapa.values.company import Company

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
    "UNARCHIVED": "APPROVED",
    "DISABLED": "DISABLED",
    "LOCKED": "DISABLED",
    "PENDING_DELETION": "DISABLED",
    "ARCHIVED": "DISABLED",
}
"""Maps the channel's statuses to ours. An unknown status changes nothing."""
DELETED = "DELETED"


async def create(tx: Tx, company: Company, body: TemplateIn) -> Template:
    """Pending until the channel that reviews templates decides."""
    _check_line("name", body.name)
    _check_line("language", body.language)
    content = TemplateContent(
        category=body.category,
        parameter_format=body.parameter_format,
        header=_read_header(body.header),
        body=body.body or "",
        footer=body.footer,
        buttons=body.buttons,
        cards=body.cards,
        limited_time_offer=body.limited_time_offer,
        ttl_seconds=body.ttl_seconds,
        authentication=body.authentication,
        examples=body.examples,
    )
    check_content(content)
    source = body.source or ("AUTH" if body.category == "AUTHENTICATION" else "CRM")
    stored = add_preset(body.language, content)
    return await queries.insert_template(tx, company.id, TEMPLATE_ID.new(), body.name, body.language, source, stored)


async def prepare_change(tx: Tx, company: Company, id: str, patch: TemplatePatch) -> tuple[Template, TemplateContent]:
    """The template and its content after the change, which is checked but not stored yet."""
    template = await queries.lock_template(tx, company.id, id)
    content = _revise(parse_content(template), patch)
    check_content(content)
    is_there = await queries.find_provider_id(tx, company.id, id) is not None
    if is_there and template.status in {"PENDING", "DISABLED"}:
        raise TemplateOnChannel
    if is_there and template.status == "APPROVED" and content.category != template.category:
        raise Invalid.field("category", "must stay as it is while the template is approved")
    return template, add_preset(template.language, content)


async def change(tx: Tx, company: Company, id: str, content: TemplateContent) -> Template:
    """The change is to be reviewed."""
    return await queries.update_template(tx, company.id, id, content)


async def delete(tx: Tx, company: Company, id: str) -> None:
    await queries.delete_template(tx, company.id, id)


async def apply_verdict(tx: Tx, company: Company, verdict: TemplateVerdict) -> None:
    """Stores a channel's decision, if the decision is known. A template that was deleted there goes here, too; one that
    was created or changed there is read with all of its parts in the next round."""
    if verdict.has_new_content:
        await queries.ask_for_templates(tx, company.id)
        return
    word = (verdict.status or "").upper()
    if word == DELETED:
        await queries.delete_by_name(tx, company.id, verdict.name, verdict.language)
        return
    status = APPROVALS.get(word)
    if status is None and verdict.quality is None and verdict.category is None:
        return
    reason = None if verdict.reason in {None, "", "NONE"} else verdict.reason
    decided = await queries.decide(
        tx, company.id, verdict.name, verdict.language, status, reason, verdict.quality, verdict.category
    )
    if decided is None:
        await queries.ask_for_templates(tx, company.id)


async def adopt(tx: Tx, company: Company, owner: str, found: ChannelTemplate, since: datetime) -> None:
    """Stores a template of the channel as it was there at `since`; it may have been created there."""
    if found.status.upper() == DELETED:
        return
    existing = await queries.find_by_name(tx, company.id, found.name, found.language)
    state, content = _build_state(owner, found, existing), found.content
    if existing is None:
        source = "AUTH" if content.category == "AUTHENTICATION" else "CRM"
        id = TEMPLATE_ID.new()
        await queries.insert_template(tx, company.id, id, found.name, found.language, source, content)
    else:
        id, content = existing.id, _merge(parse_content(existing), content)
    await queries.refresh(tx, company.id, id, since, content, state)


async def settle(tx: Tx, company: Company, template: Template, owner: str, decided: ChannelTemplate) -> Template:
    """Stores the channel's answer to a submitted template, unless it was deleted meanwhile."""
    state = _build_state(owner, decided, None)
    return await queries.record_submission(tx, company.id, template.id, decided.content.category, state) or template


async def reject(tx: Tx, company: Company, template: Template, reason: str) -> Template:
    """The channel refused to review the template."""
    rejected = await queries.reject(tx, company.id, template.id, reason)
    return rejected or await queries.get_template(tx, company.id, template.id)


async def drop_missing(tx: Tx, company: Company, owner: str, found: Sequence[ChannelTemplate], since: datetime) -> None:
    """Deletes templates that the channel had and has no more. Those of another account stay, and cannot be sent until
    that account is connected again."""
    existing = [(template.name, template.language) for template in found if template.status.upper() != DELETED]
    await queries.delete_missing(tx, company.id, owner, since, existing)
    await queries.disable_foreign(
        tx, company.id, owner, f"It belongs to another account than {owner}, the connected one."
    )


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
        return _check_sendable(fitting[0])
    if candidates:
        variants = ", ".join(f"{template.source} in {template.language}" for template in candidates)
        raise TemplateNotFound(f"The template {name} exists only as {variants}.")
    names = await queries.list_names(db, company.id, MAX_SUGGESTED_FROM)
    raise TemplateNotFound(f"There is no template called {name}.{suggest(name, names)}")


async def has_template(db: Connection, company: Company, name: str, language: str) -> bool:
    return await queries.find_by_name(db, company.id, name, language) is not None


def is_secret(template: Template) -> bool:
    """Whether its values are one-time codes, which only the recipient may see."""
    return template.source == "AUTH" or template.category == "AUTHENTICATION"


def add_preset(language: str, content: TemplateContent) -> TemplateContent:
    """With the text that the channel writes, so that lists and other channels have one."""
    if content.category != "AUTHENTICATION":
        return content
    rules = content.authentication or Authentication()
    body, footer = build_text(language, rules)
    return replace(content, body=body, footer=footer, authentication=rules)


def _check_sendable(template: Template) -> Template:
    if template.sendable:
        return template
    raise TemplateNotSendable(
        f"The template {template.name} in {template.language} cannot be sent: {template.not_sendable_reason}"
    )


def _build_state(owner: str, found: ChannelTemplate, existing: Template | None) -> ChannelState:
    """An unknown status changes nothing; a new template with one waits."""
    status = APPROVALS.get(found.status.upper())
    reason = found.reason
    if status is None:
        status = existing.status if existing else "PENDING"
        reason = reason or f"The channel's status is {found.status}."
    return ChannelState(status, reason, found.quality, found.problem, found.id or found.name, owner)


def _read_header(header: str | Header | None) -> Header | None:
    """A plain string is a text header."""
    return Header("text", header) if isinstance(header, str) else header


def _check_line(field: str, text: str) -> None:
    """In a pattern, `$` would accept a trailing line feed."""
    if text.endswith("\n"):
        raise Invalid.field(field, "must not end with a line feed")


def _merge(stored: TemplateContent, found: TemplateContent) -> TemplateContent:
    """The channel's content, with what the channel does not show: our own examples, and the apps of a one-time code."""
    is_code = found.category == "AUTHENTICATION" and any(button.type == "otp" for button in stored.buttons)
    return replace(
        found,
        buttons=stored.buttons if is_code else found.buttons,
        authentication=stored.authentication if is_code else found.authentication,
        ttl_seconds=found.ttl_seconds or stored.ttl_seconds,
        examples=stored.examples or found.examples,
    )


def _revise(content: TemplateContent, patch: TemplatePatch) -> TemplateContent:
    """Examples of a part that changes go, unless new ones come with it."""
    if content.category == "AUTHENTICATION":
        content = replace(content, body="", footer=None)  # the channel writes them
    changes = {name: getattr(patch, name) for name in patch.__struct_fields__ if getattr(patch, name) is not UNSET}
    if not isinstance(patch.header, UnsetType):
        changes["header"] = _read_header(patch.header)
    if patch.examples is UNSET and content.examples is not None:
        dropped = {name: None for name in content.examples.__struct_fields__ if name in changes}
        changes["examples"] = replace(content.examples, **dropped)
    return replace(content, **changes)
