"""Settings: templates for messages, with where their approval stands."""

import re
from typing import Any

from starlette.responses import Response

from sapa.console.listing import read_list
from sapa.console.routes import (
    DEVELOPERS,
    PageRequest,
    console,
    go_to,
)
from sapa.http.endpoints import Base
from sapa.http.errors import ApiError

STATUSES = ("PENDING", "APPROVED", "REJECTED", "PAUSED", "DISABLED")
CATEGORIES = ("UTILITY", "MARKETING", "AUTHENTICATION")
HEADERS = ("none", "text", "image", "video", "document")
BUTTONS = ("quick_reply", "url", "phone_number")
LEAST_BUTTONS = 3
MOST_BUTTONS = 10

_PLACE = re.compile(r"\{\{\s*([1-9][0-9]{0,2})\s*\}\}")


@console.get("/{environment}/templates", roles=DEVELOPERS)
async def list_templates(visit: PageRequest) -> Response:
    shown = await read_list(visit, "/templates", "status", base=Base.MESSAGING)
    return visit.show("templates.html", statuses=STATUSES, **shown)


@console.get("/{environment}/templates/new", roles=DEVELOPERS)
async def show_new_template(visit: PageRequest) -> Response:
    return _show_form(visit, None, _read_typed(visit))


@console.post("/{environment}/templates", roles=DEVELOPERS, shown_by=show_new_template)
async def create_template(visit: PageRequest) -> Response:
    typed = _read_typed(visit)
    body = {"name": typed["name"], "language": typed["language"], **_build_content(typed)}
    noted = ("template.created", typed["name"])
    made = await visit.ask("POST", "/templates", body=body, base=Base.MESSAGING, noted=noted)
    return go_to(visit.path(f"/templates/{made['data']['id']}"))


@console.get("/{environment}/templates/{id}", roles=DEVELOPERS)
async def show_template(visit: PageRequest) -> Response:
    template = await _get_template(visit)
    preview, params = None, visit.request.query_params.getlist("param")
    if params and not visit.form:
        try:
            preview = (await _ask(visit, "POST", f"/{template['id']}/preview", body={"params": params}))["data"]
        except ApiError as error:
            visit.error = error
    typed = _read_typed(visit) if visit.form else _read_stored(template)
    places = sorted({int(place) for place in _PLACE.findall(template["body"])})
    return _show_form(visit, template, typed, preview=preview, params=params, places=places)


@console.post("/{environment}/templates/{id}", roles=DEVELOPERS, shown_by=show_template)
async def change_template(visit: PageRequest) -> Response:
    template = await _get_template(visit)
    path, noted = f"/templates/{template['id']}", ("template.changed", template["name"])
    body = _build_content(_read_typed(visit))
    await visit.ask("PUT", path, body=body, base=Base.MESSAGING, noted=noted)
    return go_to(visit.path(path))


@console.post("/{environment}/templates/{id}/delete", roles=DEVELOPERS, shown_by=show_template)
async def delete_template(visit: PageRequest) -> Response:
    template = await _get_template(visit)
    path, noted = f"/templates/{template['id']}", ("template.deleted", template["name"])
    await visit.ask("DELETE", path, base=Base.MESSAGING, noted=noted)
    return go_to(visit.path("/templates"))


async def _ask(
    visit: PageRequest, method: str, path: str, query: dict[str, str] | None = None, body: object = None
) -> Any:
    return await visit.ask(method, f"/templates{path}", query, body, Base.MESSAGING)


async def _get_template(visit: PageRequest) -> dict[str, Any]:
    found: dict[str, Any] = (await _ask(visit, "GET", f"/{visit.request.path_params['id']}"))["data"]
    return found


def _show_form(visit: PageRequest, template: dict[str, Any] | None, typed: dict[str, Any], **context: Any) -> Response:
    rows = typed["buttons"][:MOST_BUTTONS]
    empty = {"type": "quick_reply", "text": "", "target": ""}
    missing = max(LEAST_BUTTONS, min(len(rows) + 1, MOST_BUTTONS)) - len(rows)
    return visit.show(
        "template_new.html" if template is None else "template.html",
        shown=template,
        typed=typed,
        buttons=rows + [empty] * missing,
        categories=CATEGORIES,
        headers=HEADERS,
        button_types=BUTTONS,
        **context,
    )


def _read_typed(visit: PageRequest) -> dict[str, Any]:
    names = ("name", "language", "category", "header", "header_text", "footer")
    parts = ("button_type", "button_text", "button_target")
    typed = zip(*(visit.all_given(name) for name in parts), strict=False)
    return {
        **{name: visit.given(name) for name in names},
        "body": visit.given("body").replace("\r\n", "\n"),
        "buttons": [
            {"type": type, "text": text.strip(), "target": target.strip()}
            for type, text, target in typed
            if text.strip() or target.strip()
        ],
    }


def _read_stored(template: dict[str, Any]) -> dict[str, Any]:
    header = template["header"] or {"type": "none", "text": ""}
    return {
        **{name: template[name] for name in ("name", "language", "category", "body")},
        "header": header["type"],
        "header_text": header.get("text") or "",
        "footer": template["footer"] or "",
        "buttons": [
            {"type": one["type"], "text": one["text"], "target": one.get("url") or one.get("phoneNumber") or ""}
            for one in template["buttons"]
        ],
    }


def _build_content(typed: dict[str, Any]) -> dict[str, Any]:
    """What a template says, as the API takes it."""
    header = {"type": typed["header"]} if typed["header"] not in {"", "none"} else None
    if header and header["type"] == "text":
        header["text"] = typed["header_text"]
    return {
        "category": typed["category"],
        "header": header,
        "body": typed["body"],
        "footer": typed["footer"] or None,
        "buttons": [_build_button(one) for one in typed["buttons"]],
    }


def _build_button(typed: dict[str, str]) -> dict[str, str]:
    target = {"url": "url", "phone_number": "phoneNumber"}.get(typed["type"])
    return {"type": typed["type"], "text": typed["text"], **({target: typed["target"]} if target else {})}
