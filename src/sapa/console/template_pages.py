"""Settings: message templates and their approval."""

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
async def list_templates(page: PageRequest) -> Response:
    listing = await read_list(page, "/templates", "status", base=Base.MESSAGING)
    return page.show("templates.html", statuses=STATUSES, **listing)


@console.get("/{environment}/templates/new", roles=DEVELOPERS)
async def show_new_template(page: PageRequest) -> Response:
    return _show_form(page, None, _read_typed(page))


@console.post("/{environment}/templates", roles=DEVELOPERS, shown_by=show_new_template)
async def create_template(page: PageRequest) -> Response:
    typed = _read_typed(page)
    body = {"name": typed["name"], "language": typed["language"], **_build_content(typed)}
    noted = ("template.created", typed["name"])
    made = await page.call("POST", "/templates", body=body, base=Base.MESSAGING, noted=noted)
    return go_to(page.path(f"/templates/{made['data']['id']}"))


@console.get("/{environment}/templates/{id}", roles=DEVELOPERS)
async def show_template(page: PageRequest) -> Response:
    template = await _get_template(page)
    preview, params = None, page.request.query_params.getlist("param")
    if params and not page.form:
        try:
            preview = (await _ask(page, "POST", f"/{template['id']}/preview", body={"params": params}))["data"]
        except ApiError as error:
            page.error = error
    typed = _read_typed(page) if page.form else _read_stored(template)
    places = sorted({int(place) for place in _PLACE.findall(template["body"])})
    return _show_form(page, template, typed, preview=preview, params=params, places=places)


@console.post("/{environment}/templates/{id}", roles=DEVELOPERS, shown_by=show_template)
async def change_template(page: PageRequest) -> Response:
    template = await _get_template(page)
    path, noted = f"/templates/{template['id']}", ("template.changed", template["name"])
    body = _build_content(_read_typed(page))
    await page.call("PUT", path, body=body, base=Base.MESSAGING, noted=noted)
    return go_to(page.path(path))


@console.post("/{environment}/templates/{id}/delete", roles=DEVELOPERS, shown_by=show_template)
async def delete_template(page: PageRequest) -> Response:
    template = await _get_template(page)
    path, noted = f"/templates/{template['id']}", ("template.deleted", template["name"])
    await page.call("DELETE", path, base=Base.MESSAGING, noted=noted)
    return go_to(page.path("/templates"))


async def _ask(
    page: PageRequest, method: str, path: str, query: dict[str, str] | None = None, body: object = None
) -> Any:
    return await page.call(method, f"/templates{path}", query, body, Base.MESSAGING)


async def _get_template(page: PageRequest) -> dict[str, Any]:
    found: dict[str, Any] = (await _ask(page, "GET", f"/{page.request.path_params['id']}"))["data"]
    return found


def _show_form(page: PageRequest, template: dict[str, Any] | None, typed: dict[str, Any], **context: Any) -> Response:
    rows = typed["buttons"][:MOST_BUTTONS]
    empty = {"type": "quick_reply", "text": "", "target": ""}
    missing = max(LEAST_BUTTONS, min(len(rows) + 1, MOST_BUTTONS)) - len(rows)
    return page.show(
        "template_new.html" if template is None else "template.html",
        shown=template,
        typed=typed,
        buttons=rows + [empty] * missing,
        categories=CATEGORIES,
        headers=HEADERS,
        button_types=BUTTONS,
        **context,
    )


def _read_typed(page: PageRequest) -> dict[str, Any]:
    names = ("name", "language", "category", "header", "header_text", "footer")
    parts = ("button_type", "button_text", "button_target")
    typed = zip(*(page.form_values(name) for name in parts), strict=False)
    return {
        **{name: page.form_value(name) for name in names},
        "body": page.form_value("body").replace("\r\n", "\n"),
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
    """A template's content as the API's body."""
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
