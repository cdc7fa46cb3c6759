"""Simulates the templates of a WhatsApp business account: create, edit, list, delete, and the check of each message.

The name selects what happens after the review.
"""

import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sapa.context import AppContext
from sapa.db.pool import Connection, Tx
from sapa.sandbox.callbacks import schedule
from sapa.sandbox.channels import outbox, queries, refusals
from sapa.sandbox.channels.accounts import SandboxAccount
from sapa.sandbox.channels.graph_errors import GraphRefusal, build_refusal
from sapa.sandbox.channels.graph_posts import sign_post
from sapa.sandbox.channels.queries import TemplateRow
from sapa.sandbox.channels.simulator import Post, build_answer, build_url
from sapa.sandbox.channels.template_checks import find_mistake, find_status_mistake
from sapa.sandbox.channels.template_review import review
from sapa.sandbox.types import PlannedCallback
from sapa.values.hook_calls import HookAnswer, HookCall

MAX_TEMPLATES = 6_000
PAGE = 25
DECISION_SECONDS = 1.0

Json = dict[str, Any]


class TemplateScenario(Struct, frozen=True):
    """What happens to a template whose name begins with the scenario's."""

    answered: str
    """The status in the answer."""
    later: str | None = None
    """The status that a callback reports a second later."""
    reason: str | None = None
    category: str | None = None
    quality: str | None = None


APPROVED = TemplateScenario("APPROVED")
SCENARIOS: Mapping[str, TemplateScenario] = {
    "sim_pending": TemplateScenario("PENDING"),
    "sim_slow": TemplateScenario("PENDING", later="APPROVED"),
    "sim_rejected": TemplateScenario("REJECTED", reason="INVALID_FORMAT"),
    "sim_paused": TemplateScenario("APPROVED", later="PAUSED", quality="RED"),
    "sim_disabled": TemplateScenario("APPROVED", later="DISABLED"),
    "sim_recategorised": TemplateScenario("APPROVED", category="MARKETING"),
}


async def answer(context: AppContext, account: SandboxAccount, call: HookCall) -> HookAnswer:
    """GET, POST and DELETE /{business account}/message_templates"""
    if call.method == "GET":
        return await _list(context, account, call)
    async with context.database.transaction() as tx:
        if call.method == "DELETE":
            answer = await _delete(tx, account, call)
        else:
            answer = await _create(tx, account, msgspec.json.decode(call.body, type=Json))
        await outbox.record(tx, account.company_id, account.source, call, answer)
    return answer


async def edit(context: AppContext, account: SandboxAccount, call: HookCall, id: str) -> HookAnswer | None:
    """POST /{template}; None if there is no such template."""
    async with context.database.transaction() as tx:
        row = await _find_by_id(tx, account, id)
        if row is None:
            return None
        answer = await _edit(tx, account, row, msgspec.json.decode(call.body, type=Json))
        await outbox.record(tx, account.company_id, account.source, call, answer)
    return answer


async def show(context: AppContext, account: SandboxAccount, id: str) -> HookAnswer | None:
    """GET /{template}; None if there is no such template."""
    async with context.database.connection() as db:
        row = await _find_by_id(db, account, id)
    return None if row is None else build_answer(_show(row))


async def find_refusal(
    context: AppContext, account: SandboxAccount, template: Json, is_to_user_id: bool = False
) -> GraphRefusal | None:
    """Why a message with this template is refused; None if it is accepted."""
    name, language = str(template.get("name")), str((template.get("language") or {}).get("code"))
    async with context.database.connection() as db:
        row = await queries.find_template(db, account.company_id, _owner(account), name, language)
    mistake = find_status_mistake(row.status if row else None, name, language)
    if mistake is not None or row is None:
        return mistake
    stored = msgspec.json.decode(row.content, type=Json)
    if is_to_user_id and stored["category"] == "AUTHENTICATION":
        return refusals.build_error(131062)
    return find_mistake(stored, template)


async def find_category(db: Connection, account: SandboxAccount, template: Json) -> str | None:
    """As pricing names it; None for a template that the account does not have."""
    name, language = str(template.get("name")), str((template.get("language") or {}).get("code"))
    row = await queries.find_template(db, account.company_id, _owner(account), name, language)
    return str(msgspec.json.decode(row.content, type=Json)["category"]).lower() if row else None


async def _create(tx: Tx, account: SandboxAccount, body: Json) -> HookAnswer:
    if refusal := review(body):
        return build_refusal(refusal)
    name, language = str(body["name"]), str(body["language"])
    if await queries.find_template(tx, account.company_id, _owner(account), name, language):
        advice = f"There is already a template with the name {name} in {language}."
        return build_refusal(_invalid(2388024, "Content in this language already exists", advice))
    if await queries.count_templates(tx, account.company_id, _owner(account)) >= MAX_TEMPLATES:
        return build_refusal(_invalid(2388019, "Too many templates", f"There are {MAX_TEMPLATES} templates already."))
    scenario = _get_scenario(name)
    body = body | {"category": scenario.category or str(body["category"]).upper()}
    await _decide(tx, account, body, scenario)
    decided = {"id": build_id(name, language), "status": scenario.answered, "category": body["category"]}
    return build_answer(decided)


async def _edit(tx: Tx, account: SandboxAccount, row: TemplateRow, changes: Json) -> HookAnswer:
    stored = msgspec.json.decode(row.content, type=Json)
    if row.status not in {"APPROVED", "REJECTED", "PAUSED"}:
        advice = f"A template with the status {row.status} cannot be edited."
        return build_refusal(_invalid(2388003, "The template cannot be edited", advice))
    if row.status == "APPROVED" and changes.get("category", stored["category"]) != stored["category"]:
        advice = "The category of an approved template cannot be changed."
        return build_refusal(_invalid(2388003, "The template cannot be edited", advice))
    body = stored | changes
    if refusal := review(body):
        return build_refusal(refusal)
    scenario = _get_scenario(row.name)
    await _decide(tx, account, body, replace(scenario, later=scenario.later or scenario.answered))
    return build_answer({"success": True})


async def _decide(tx: Tx, account: SandboxAccount, body: Json, scenario: TemplateScenario) -> None:
    """Stores the template with the status that it ends with, and announces what the answer does not say."""
    status, company_id = scenario.later or scenario.answered, account.company_id
    name, language = str(body["name"]), str(body["language"])
    if scenario.quality:
        body = body | {"quality_score": {"score": scenario.quality}}
    content = msgspec.json.encode(body)
    await queries.put_template(tx, company_id, _owner(account), name, language, content, status, scenario.reason)
    for post in _build_callbacks(account, name, language, body, scenario):
        await schedule(tx, company_id, account.hook, [PlannedCallback(post.headers, post.body, DECISION_SECONDS)])


def _build_callbacks(
    account: SandboxAccount, name: str, language: str, body: Json, scenario: TemplateScenario
) -> list[Post]:
    named = {
        "message_template_id": int(build_id(name, language)),
        "message_template_name": name,
        "message_template_language": language,
    }
    posts = []
    if scenario.later is not None or scenario.reason is not None:
        status = {"event": scenario.later or scenario.answered, "message_template_category": body["category"]}
        reason = {"reason": scenario.reason or "NONE"}
        posts.append(_post(account, "message_template_status_update", {**named, **status, **reason}))
    if scenario.quality is not None:
        quality = {"previous_quality_score": "UNKNOWN", "new_quality_score": scenario.quality}
        posts.append(_post(account, "message_template_quality_update", {**named, **quality}))
    if scenario.category is not None:
        category = {"new_category": scenario.category, "previous_category": "UTILITY"}
        posts.append(_post(account, "template_category_update", {**named, **category}))
    return posts


def _post(account: SandboxAccount, field: str, value: Json) -> Post:
    change = {"field": field, "value": value}
    entry = {"id": account.public["waba_id"], "time": int(time.time()), "changes": [change]}
    return sign_post(account, {"object": "whatsapp_business_account", "entry": [entry]})


async def _list(context: AppContext, account: SandboxAccount, call: HookCall) -> HookAnswer:
    limit, after = call.query.get("limit", ""), call.query.get("after", "")
    size = int(limit) if limit.isdigit() and 0 < int(limit) <= 1000 else PAGE
    async with context.database.connection() as db:
        rows = await queries.list_templates(db, account.company_id, _owner(account))
    wanted = [row for row in rows if call.query.get("name") in {None, row.name}]
    start = int(after) if after.isdigit() else 0
    page = wanted[start : start + size]
    paging: Json = {"cursors": {"before": str(start), "after": str(start + len(page))}}
    if start + size < len(wanted):
        paging["next"] = build_url(context, call, f"{call.path}?limit={size}&after={start + size}")
    summary = {
        "total_count": len(wanted),
        "message_template_count": len(rows),
        "message_template_limit": MAX_TEMPLATES,
        "are_translations_complete": True,
    }
    return build_answer({"data": [_show(row) for row in page], "paging": paging, "summary": summary})


async def _delete(tx: Tx, account: SandboxAccount, call: HookCall) -> HookAnswer:
    """By name in all languages, or one language by its id."""
    name, id = call.query.get("name", ""), call.query.get("hsm_id")
    rows = [row for row in await queries.list_templates(tx, account.company_id, _owner(account)) if row.name == name]
    wanted = [row for row in rows if id in {None, build_id(row.name, row.language)}]
    if not wanted:
        return build_refusal(
            _invalid(2593002, "Message Template Not Found", f"There is no template with the name {name}.")
        )
    for row in wanted:
        await queries.delete_template(tx, account.company_id, _owner(account), row.name, row.language)
    return build_answer({"success": True})


def _show(row: TemplateRow) -> Json:
    """As a list has it: the text and the button of an authentication template are written out."""
    content = msgspec.json.decode(row.content, type=Json)
    shown = {
        "id": build_id(row.name, row.language),
        "name": row.name,
        "language": row.language,
        "status": row.status,
        "category": content["category"],
        "parameter_format": str(content.get("parameter_format", "POSITIONAL")).upper(),
        "components": content["components"],
        "quality_score": {"date": int(time.time()), **content.get("quality_score", {"score": "UNKNOWN"})},
        "rejected_reason": row.reason or "NONE",
    }
    if "message_send_ttl_seconds" in content:
        shown["message_send_ttl_seconds"] = content["message_send_ttl_seconds"]
    if content["category"] == "AUTHENTICATION":
        shown["components"] = [_write_out(part) for part in content["components"]]
    return shown


def _write_out(part: Json) -> Json:
    match str(part["type"]).upper():
        case "BODY":
            advice = " For your security, do not share this code." if part.get("add_security_recommendation") else ""
            return {**part, "text": f"*{{{{1}}}}* is your verification code.{advice}"}
        case "FOOTER":
            return {**part, "text": f"This code expires in {part['code_expiration_minutes']} minutes."}
        case _:
            return {**part, "buttons": [_write_out_button(button) for button in part["buttons"]]}


def _write_out_button(button: Json) -> Json:
    address = f"https://www.whatsapp.com/otp/code/?otp_type={button['otp_type']}&code=otp"
    text = button.get("text") or "Copy code"
    return {"type": "URL", "text": text, "url": f"{address}{{{{1}}}}", "example": [f"{address}123456"]}


def _get_scenario(name: str) -> TemplateScenario:
    return next((scenario for start, scenario in SCENARIOS.items() if name.startswith(start)), APPROVED)


async def _find_by_id(db: Connection, account: SandboxAccount, id: str) -> TemplateRow | None:
    rows = await queries.list_templates(db, account.company_id, _owner(account))
    return next((row for row in rows if build_id(row.name, row.language) == id), None)


def build_id(name: str, language: str) -> str:
    return str(int.from_bytes(sha256(f"{name}/{language}".encode()).digest()[:6]))


def _owner(account: SandboxAccount) -> str:
    """The business account: all numbers of a company belong to the same one."""
    return account.public["waba_id"]


def _invalid(subcode: int, title: str, advice: str) -> GraphRefusal:
    return GraphRefusal(
        code=100, message="Invalid parameter", subcode=subcode, title=title, advice=advice, has_prefix=False
    )
