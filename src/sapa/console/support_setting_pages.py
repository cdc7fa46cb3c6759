"""Settings of the inbox: labels, teams, saved replies, macros, views, targets and business hours.

Each list is one page: its entries to change or delete, and a form for another one.
"""

import re
from datetime import date
from typing import Any, Literal

import asyncpg
from msgspec import Struct
from starlette.responses import Response

from sapa.console.inbox_queue import PRIORITIES, read_all
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import Handler, console, go_to
from sapa.console.translations import translate
from sapa.http.endpoints import Base
from sapa.http.errors import FieldError, Invalid
from sapa.http.errors import translate as translate_violation
from sapa.messaging.channels.registry import CHANNEL_NAMES
from sapa.messaging.connections import actions as connections
from sapa.support.business_hours.types import DAYS

EMPTY_HOLIDAYS = 3
_OF_DAY = re.compile(r"weekly\[(\d+)\](\..*)?").fullmatch
_TIME = re.compile(r"(\d{1,2})(?:[:.](\d{2}))?", re.ASCII).fullmatch
HOURS_A_DAY = 2

Json = dict[str, Any]
Options = dict[str, str]


class SettingField(Struct, frozen=True):
    """A field of a form. Its name is the API's, with a dot for nesting."""

    name: str
    label: str
    kind: Literal["text", "area", "color", "number", "flag", "choice", "choices"] = "text"
    options: str = ""
    """Where the choices come from."""
    hint: str = ""
    is_required: bool = False
    is_number: bool = False
    """The choices are numbers."""


class SettingList(Struct, frozen=True):
    """A list of settings, with the same path in the API and on the page."""

    path: str
    title: str
    about: str
    fields: tuple[SettingField, ...]
    named_by: str = "name"
    page: str = ""
    deletion: str = "Delete “{name}”? This cannot be undone."

    @property
    def address(self) -> str:
        return f"/settings/{self.page or self.path}"


NAME = SettingField("name", "Name", is_required=True)
PLACEHOLDERS = "{nama}, {pesanan}, {resi} and {agen} are filled in."
LISTS = (
    SettingList(
        "labels", "Labels", "Words that agents put on conversations.",
        (NAME, SettingField("color", "Colour", "color")),
        deletion="Delete “{name}”? It is taken off every conversation. This cannot be undone.",
    ),
    SettingList(
        "teams", "Teams", "Agents who share a queue.",
        (
            NAME,
            SettingField("agentIds", "Members", "choices", "agents", is_number=True),
            SettingField("autoAssign", "Assign waiting conversations to members who are online", "flag"),
        ),
    ),
    SettingList(
        "saved-replies", "Saved replies", "Texts that agents insert with a slash.",
        (
            SettingField("shortcut", "Shortcut", hint="Lowercase letters, digits, - and _", is_required=True),
            SettingField("text", "Text", "area", hint=PLACEHOLDERS, is_required=True),
        ),
        named_by="shortcut",
    ),
    SettingList(
        "macros", "Macros", "Several actions with one key: the first nine are on the keys 1 to 9.",
        (
            NAME,
            SettingField("actions.addLabelIds", "Add labels", "choices", "labels"),
            SettingField("actions.priority", "Priority", "choice", "priorities"),
            SettingField("actions.teamId", "Team", "choice", "teams"),
            SettingField("actions.assignTo", "Assign to", "choice", "agents", is_number=True),
            SettingField("actions.snoozeMinutes", "Snooze for (minutes)", "number"),
            SettingField("actions.resolve", "Resolve", "flag"),
            SettingField("note", "Note for the team", "area"),
            SettingField("reply", "Reply to send", "area", hint=PLACEHOLDERS),
        ),
    ),
    SettingList(
        "views", "Views", "Saved filters of the inbox.",
        (
            NAME,
            SettingField("agentId", "Only for", "choice", "agents", is_number=True),
            SettingField("filters.status", "Status", "choice", "statuses"),
            SettingField("filters.mine", "Only the reader's own", "flag"),
            SettingField("filters.agentId", "Agent", "choice", "agents", is_number=True),
            SettingField("filters.channel", "Channel", "choice", "channels"),
            SettingField("filters.labelId", "Label", "choice", "labels"),
            SettingField("filters.priority", "Priority", "choice", "priorities"),
            SettingField("filters.teamId", "Team", "choice", "teams"),
            SettingField("filters.rating", "Rating", "number"),
            SettingField("filters.breached", "Target missed", "choice", "booleans"),
            SettingField("filters.snoozed", "Snoozed", "choice", "booleans"),
            SettingField("filters.waiting", "Customer waits", "choice", "booleans"),
            SettingField("filters.sort", "Sort by", "choice", "sorts"),
        ),
    ),
    SettingList(
        "sla-policies", "Targets", "How soon to reply and to resolve. The first that matches a conversation counts.",
        (
            NAME,
            SettingField("position", "Position", "number", hint="The lowest comes first."),
            SettingField("firstResponseMinutes", "First reply within (minutes)", "number"),
            SettingField("resolutionMinutes", "Resolve within (minutes)", "number"),
            SettingField("inBusinessHours", "Count business hours only", "flag"),
            SettingField("priorities", "Only priorities", "choices", "priorities"),
            SettingField("sources", "Only channels", "choices", "sources"),
            SettingField("labelIds", "Only labels", "choices", "labels"),
        ),
        page="targets",
    ),
)  # fmt: skip


def _declare(setting: SettingList) -> None:
    address = f"/{{environment}}{setting.address}"

    @console.get(address, roles=DEVELOPERS)
    async def show(page: PageRequest) -> Response:
        return await _show(page, setting)

    @console.post(address, roles=DEVELOPERS, shown_by=show, says="Added")
    async def create(page: PageRequest) -> Response:
        return await _send(page, setting, "POST", f"/{setting.path}", _gather(page, setting))

    _declare_changes(setting, address, show)


def _declare_changes(setting: SettingList, address: str, show: Handler) -> None:
    @console.post(f"{address}/{{id}}", roles=DEVELOPERS, shown_by=show, says="Saved")
    async def change(page: PageRequest) -> Response:
        path = f"/{setting.path}/{page.request.path_params['id']}"
        return await _send(page, setting, "PUT", path, _gather(page, setting))

    @console.post(f"{address}/{{id}}/delete", roles=DEVELOPERS, shown_by=show, says="Deleted")
    async def delete(page: PageRequest) -> Response:
        return await _send(page, setting, "DELETE", f"/{setting.path}/{page.request.path_params['id']}", None)


async def _show(page: PageRequest, setting: SettingList) -> Response:
    items = await read_all(page, f"/{setting.path}")
    if setting.path == "sla-policies":
        items.sort(key=lambda item: item["position"])
    return page.show(
        "setting_list.html",
        setting=setting,
        lists=LISTS,
        items=[(item, {one.name: _spread(item, one) for one in setting.fields}) for item in items],
        options={kind: await _list_options(page, kind) for kind in {one.options for one in setting.fields} if kind},
        changed=page.request.path_params.get("id", ""),
        typed={one.name: page.form_values(one.name) for one in setting.fields} if page.form else None,
        blank={one.name: ["#0f766e"] if one.kind == "color" else [""] for one in setting.fields},
    )


async def _send(page: PageRequest, setting: SettingList, method: str, path: str, body: object) -> Response:
    try:
        await page.call(method, path, body=body, base=Base.MESSAGING, noted=("settings.changed", setting.path))
    except asyncpg.UniqueViolationError as violation:
        if (error := translate_violation(violation)) is None:
            raise
        error.details = [FieldError(setting.named_by, "is taken")]
        raise error from None
    return go_to(page.path(setting.address))


def _gather(page: PageRequest, setting: SettingList) -> Json:
    body: Json = {}
    for one in setting.fields:
        *parents, last = one.name.split(".")
        target = body
        for parent in parents:
            target = target.setdefault(parent, {})
        value = _read(page, one)
        if value is not None or one.is_required or not parents:
            target[last] = value
    _check(setting, body)
    return {name: value for name, value in body.items() if name != "position" or value is not None}


def _check(setting: SettingList, body: Json) -> None:
    """The API accepts these, and nobody means them."""
    if setting.path == "macros" and not any([*body["actions"].values(), body["note"], body["reply"]]):
        raise Invalid.field("reply", "needs an action, a note or a reply")
    if setting.path == "sla-policies":
        first, resolution = body["firstResponseMinutes"], body["resolutionMinutes"]
        if first and resolution and resolution < first:
            raise Invalid.field("resolutionMinutes", "must not be before the first reply")


def _read(page: PageRequest, one: SettingField) -> Any:
    text = page.form_value(one.name)
    if one.kind == "flag":
        return bool(text)
    if one.kind == "choices":
        values = [value for value in page.form_values(one.name) if value]
        return [_parse_number(one, value) for value in values] if one.is_number else values
    if one.options == "booleans":
        return {"true": True, "false": False}.get(text)
    if one.is_required and not text:
        raise Invalid.field(one.name, "is required")
    if text and (one.kind == "number" or one.is_number):
        return _parse_number(one, text)
    return text or None


def _parse_number(one: SettingField, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Invalid.field(one.name, "must be a whole number")
    return int(text)


def _spread(item: Json, one: SettingField) -> list[str]:
    """A field's values as a form shows them."""
    value: Any = item
    for step in one.name.split("."):
        value = value.get(step) if value else None
    if isinstance(value, list):
        return [str(each) for each in value]
    if isinstance(value, bool):
        return ["true" if value else "false"] if one.options else ["1" if value else ""]
    return ["" if value is None else str(value)]


async def _list_options(page: PageRequest, kind: str) -> Options:
    def say(text: str) -> str:
        return translate(page.language, text)

    match kind:
        case "agents":
            return {str(agent["id"]): agent["name"] for agent in await read_all(page, "/agents") if agent["active"]}
        case "labels" | "teams":
            return {one["id"]: one["name"] for one in await read_all(page, f"/{kind}")}
        case "priorities":
            return {name: say(f"priority {name}") for name in PRIORITIES}
        case "statuses":
            return {name: say(f"ticket {name}") for name in ("open", "assigned", "resolved")}
        case "channels":
            return {name: say(name) for name in CHANNEL_NAMES}
        case "sources":
            return {str(channel.source): say(channel.label) for channel in connections.list_channels()}
        case "sorts":
            return {name: say(f"sort {name}") for name in ("waitingSince:asc", "lastMessageAt:desc", "createdAt:desc")}
    return {"true": say("yes"), "false": say("no")}


@console.get("/{environment}/settings/hours", roles=DEVELOPERS)
async def show_hours(page: PageRequest) -> Response:
    stored = (await page.call("GET", "/business-hours", base=Base.MESSAGING))["data"]
    days = {day: [one for one in stored["weekly"] if one["day"] == day] for day in DAYS}
    if page.form:
        days = {day: _read_day(page, day) for day in DAYS}
        stored["timeZone"], stored["holidays"] = page.form_value("timeZone"), _read_holidays(page)
    empty = {"opens": "", "closes": ""}
    return page.show(
        "business_hours.html",
        lists=LISTS,
        time_zone=stored["timeZone"],
        days={day: hours + [empty] * max(1, HOURS_A_DAY - len(hours)) for day, hours in days.items()},
        holidays=stored["holidays"] + [{"date": "", "name": ""}] * EMPTY_HOLIDAYS,
    )


@console.post("/{environment}/settings/hours", roles=DEVELOPERS, shown_by=show_hours, says="Saved")
async def change_hours(page: PageRequest) -> Response:
    holidays = _read_holidays(page)
    for holiday in holidays:
        try:
            date.fromisoformat(holiday["date"])
        except ValueError:
            raise Invalid.field("holiday", "is required") from None
    weekly = [hours for day in DAYS for hours in _read_day(page, day)]
    for hours in weekly:
        if not hours["opens"] or not hours["closes"]:
            raise Invalid.field(hours["day"], "needs both times, opens and closes")
    body = {"timeZone": page.form_value("timeZone") or None, "weekly": weekly, "holidays": holidays}
    try:
        await page.call("PUT", "/business-hours", body=body, base=Base.MESSAGING, noted=("settings.changed", "hours"))
    except Invalid as error:
        raise _name_days(error, weekly) from None
    return go_to(page.path("/settings/hours"))


def _name_days(error: Invalid, weekly: list[Json]) -> Invalid:
    """What is wrong with hours is shown at their day."""
    details = [
        FieldError(weekly[int(found[1])]["day"], "must be a time, such as 09:00" if found[2] else one.message)
        if (found := _OF_DAY(one.field))
        else one
        for one in error.details or []
    ]
    return Invalid(error.message, details=details)


def _read_day(page: PageRequest, day: str) -> list[Json]:
    """The hours that are not empty."""
    opens, closes = (
        [_read_time(text.strip()) for text in page.form_values(f"{day}-{end}")] for end in ("opens", "closes")
    )
    return [
        {"day": day, "opens": start, "closes": end} for start, end in zip(opens, closes, strict=False) if start or end
    ]


def _read_time(text: str) -> str:
    """People write 8, 8.00 and 08:00. The API checks the rest."""
    found = _TIME(text)
    return f"{found[1]:0>2}:{found[2] or '00'}" if found else text


def _read_holidays(page: PageRequest) -> list[Json]:
    typed = zip(page.form_values("holiday"), page.form_values("holidayName"), strict=False)
    return [{"date": day.strip(), "name": name.strip()} for day, name in typed if day.strip() or name.strip()]


for _setting in LISTS:
    _declare(_setting)
