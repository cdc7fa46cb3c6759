"""Settings: message templates and their approval."""

from typing import Any

from msgspec.structs import replace
from starlette.responses import Response

from sapa.access import actions as access
from sapa.console import template_forms
from sapa.console.listing import read_list
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console, go_to
from sapa.console.template_forms import build_content, read_stored, read_typed
from sapa.http.endpoints import Base
from sapa.http.errors import ApiError
from sapa.messaging.costs import actions as costs
from sapa.messaging.costs.types import CostFigures

STATUSES = ("PENDING", "APPROVED", "REJECTED", "PAUSED", "DISABLED")
CATEGORIES = ("UTILITY", "MARKETING", "AUTHENTICATION")
FORMATS = ("POSITIONAL", "NAMED")
COST_DAYS = 30


@console.get("/{environment}/templates", roles=DEVELOPERS)
async def list_templates(page: PageRequest) -> Response:
    listing = await read_list(page, "/templates", "status", base=Base.MESSAGING)
    return page.show("templates.html", statuses=STATUSES, **listing)


@console.get("/{environment}/templates/new", roles=DEVELOPERS)
async def show_new_template(page: PageRequest) -> Response:
    return _show_form(page, None, read_typed(page))


@console.post("/{environment}/templates", roles=DEVELOPERS, shown_by=show_new_template, says="Template created")
async def create_template(page: PageRequest) -> Response:
    typed = read_typed(page)
    body = {"name": typed["name"], "language": typed["language"], **build_content(typed)}
    noted = ("template.created", typed["name"])
    template = await page.call("POST", "/templates", body=body, base=Base.MESSAGING, noted=noted)
    return go_to(page.path(f"/templates/{template['data']['id']}"))


@console.post("/{environment}/templates/sync", roles=DEVELOPERS, shown_by=list_templates, says="Templates updated")
async def synchronise_templates(page: PageRequest) -> Response:
    await page.call("POST", "/templates/sync", base=Base.MESSAGING)
    return go_to(page.path("/templates"))


@console.get("/{environment}/templates/{id}", roles=DEVELOPERS)
async def show_template(page: PageRequest) -> Response:
    template = await _get_template(page)
    preview, params = None, page.request.query_params.getlist("param")
    is_plain = template_forms.is_plain(template)
    places = template_forms.list_places(template, page.language) if is_plain else []
    if params and places and not page.form:
        try:
            preview = (await _ask(page, "POST", f"/{template['id']}/preview", _build_preview(template, params)))["data"]
        except ApiError as error:
            page.error = error
    typed = read_typed(page) if page.form else read_stored(template)
    spent = await _sum_costs(page, template["name"])
    return _show_form(page, template, typed, preview=preview, params=params, places=places, spent=spent)


@console.post("/{environment}/templates/{id}", roles=DEVELOPERS, shown_by=show_template, says="Saved")
async def change_template(page: PageRequest) -> Response:
    template = await _get_template(page)
    path, noted = f"/templates/{template['id']}", ("template.changed", template["name"])
    body = build_content(read_typed(page))
    await page.call("PUT", path, body=body, base=Base.MESSAGING, noted=noted)
    return go_to(page.path(path))


@console.post("/{environment}/templates/{id}/delete", roles=DEVELOPERS, shown_by=show_template, says="Template deleted")
async def delete_template(page: PageRequest) -> Response:
    template = await _get_template(page)
    path, noted = f"/templates/{template['id']}", ("template.deleted", template["name"])
    await page.call("DELETE", path, base=Base.MESSAGING, noted=noted)
    return go_to(page.path("/templates"))


async def _ask(page: PageRequest, method: str, path: str, body: object = None) -> Any:
    return await page.call(method, f"/templates{path}", body=body, base=Base.MESSAGING)


async def _get_template(page: PageRequest) -> dict[str, Any]:
    found: dict[str, Any] = (await _ask(page, "GET", f"/{page.request.path_params['id']}"))["data"]
    return found


async def _sum_costs(page: PageRequest, name: str) -> list[CostFigures]:
    """What messages with this template cost lately, in all of its languages."""
    async with page.context.database.connection() as db:
        company = await access.get_company(db, page.company_id)
        days = await costs.get_selection(db, company, None, None, COST_DAYS)
        return await costs.sum_costs(db, company, replace(days, template_id=name))


def _build_preview(template: dict[str, Any], params: list[str]) -> dict[str, Any]:
    """A file above the text is not shown, so any address will do."""
    has_file = (template["header"] or {}).get("type") in template_forms.FILES
    return {"params": params, "mediaUrl": "https://example.com/" if has_file else None}


def _show_form(page: PageRequest, template: dict[str, Any] | None, typed: dict[str, Any], **context: Any) -> Response:
    return page.show(
        "template_new.html" if template is None else "template.html",
        shown=template,
        typed=typed,
        rows=template_forms.fill_rows(typed),
        options={
            "categories": CATEGORIES,
            "formats": FORMATS,
            "languages": template_forms.LANGUAGES,
            "headers": template_forms.HEADERS,
            "buttons": template_forms.BUTTONS,
            "card_headers": template_forms.CARD_HEADERS,
            "card_buttons": template_forms.CARD_BUTTONS,
        },
        **context,
    )
