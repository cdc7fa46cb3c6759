"""Settings of the public tracking page, and of the messages about a parcel's steps."""

from base64 import b64encode
from typing import Any

from starlette.datastructures import UploadFile
from starlette.responses import Response

from sapa.console.notification_names import STEP_NAMES
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console, go_to
from sapa.http.endpoints import Base
from sapa.http.errors import FieldError, Invalid
from sapa.notifications.types import PARAM_NAMES, STEPS
from sapa.shipping.tracking_page.types import MAX_LOGO_BYTES
from sapa.shipping.tracking_page.view import DEFAULT_COLOR

PATH = "/settings/tracking"
PICTURES = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "webp": "image/webp"}
MAX_TEMPLATES = "100"


@console.get("/{environment}/settings/tracking", roles=DEVELOPERS)
async def show_tracking(page: PageRequest) -> Response:
    settings = (await page.call("GET", "/shipping/tracking-page"))["data"]
    notifications = (await page.call("GET", "/shipping/notifications"))["data"]
    templates = (await page.call("GET", "/templates", {"limit": MAX_TEMPLATES}, base=Base.MESSAGING))["data"]
    if page.form_value("form") == "page":
        typed = ("displayName", "color", "language")
        settings = settings | {name: page.form_value(name) for name in typed}
    is_typed = page.form_value("form") == "messages"
    rules = {step: _read_typed(page, step) for step in STEPS} if is_typed else _read_stored(notifications["rules"])
    return page.show(
        "tracking_settings.html",
        settings=settings,
        default_color=DEFAULT_COLOR,
        enabled=bool(page.form_value("enabled")) if is_typed else notifications["enabled"],
        rules=rules,
        steps=STEPS,
        names=STEP_NAMES,
        params=PARAM_NAMES,
        templates=sorted(
            {template["name"] for template in templates} | {rule["template"] for rule in rules.values()} - {""}
        ),
    )


def _read_stored(rules: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    stored = {rule["step"]: rule for rule in rules}
    return {
        step: {
            "template": stored.get(step, {}).get("templateName", ""),
            "params": ", ".join(stored.get(step, {}).get("params", [])),
            "sources": _join(stored.get(step, {}).get("sources")),
        }
        for step in STEPS
    }


def _join(sources: str | list[str] | None) -> str:
    return ", ".join([sources] if isinstance(sources, str) else sources or [])


def _read_typed(page: PageRequest, step: str) -> dict[str, str]:
    return {name: page.form_value(f"{step}.{name}") for name in ("template", "params", "sources")}


@console.post("/{environment}/settings/tracking", roles=DEVELOPERS, shown_by=show_tracking, has_file=True, says="Saved")
async def change_tracking_page(page: PageRequest) -> Response:
    stored = (await page.call("GET", "/shipping/tracking-page"))["data"]
    body = {
        "displayName": page.form_value("displayName") or None,
        "color": page.form_value("color") or None,
        "language": page.form_value("language"),
        "logo": None if page.form_value("removeLogo") else await _read_logo(page) or stored["logo"],
    }
    await page.call("PUT", "/shipping/tracking-page", body=body, noted=("settings.changed", "tracking page"))
    return go_to(page.path(PATH))


async def _read_logo(page: PageRequest) -> str | None:
    file = page.form.get("logo")
    if not isinstance(file, UploadFile) or not file.filename:
        return None
    type = PICTURES.get(file.filename.rpartition(".")[2].lower())
    if type is None:
        raise Invalid.field("logo", "must be a PNG, JPEG or WebP picture")
    if (file.size or 0) > MAX_LOGO_BYTES:
        raise Invalid.field("logo", f"must have at most {MAX_LOGO_BYTES // 1024} KiB; make the picture smaller")
    return f"data:{type};base64,{b64encode(await file.read()).decode()}"


@console.post("/{environment}/settings/notifications", roles=DEVELOPERS, shown_by=show_tracking, says="Saved")
async def change_notifications(page: PageRequest) -> Response:
    typed = {step: rule for step in STEPS if (rule := _read_typed(page, step))["template"]}
    stored = (await page.call("GET", "/shipping/notifications"))["data"]["rules"]
    rules = [
        {
            **_list_hidden_fields(stored, step, rule["template"]),
            "step": step,
            "templateName": rule["template"],
            "params": _split(rule["params"]),
            "sources": _split(rule["sources"]) or None,
        }
        for step, rule in typed.items()
    ]
    body = {"enabled": bool(page.form_value("enabled")), "rules": rules}
    try:
        await page.call("PUT", "/shipping/notifications", body=body, noted=("settings.changed", "notifications"))
    except Invalid as error:
        raise _rename(error, list(typed)) from None
    return go_to(page.path(PATH))


def _list_hidden_fields(stored: list[dict[str, Any]], step: str, template: str) -> dict[str, Any]:
    """What the form does not show of a rule: it stays as long as the template does."""
    same = next((rule for rule in stored if (rule["step"], rule["templateName"]) == (step, template)), {})
    return {name: same[name] for name in ("language", "templateSource") if name in same}


def _split(words: str) -> list[str]:
    return [word for part in words.split(",") if (word := part.strip())]


def _rename(error: Invalid, steps: list[str]) -> Invalid:
    """The fields of a rule, by their names in this form."""
    details = []
    for one in error.details or []:
        number, _, rest = one.field.removeprefix("rules[").partition("].")
        name = rest.partition("[")[0]
        field = f"{steps[int(number)]}.{name}" if number.isdigit() and int(number) < len(steps) else one.field
        details.append(FieldError(field, one.message))
    return Invalid(error.message, details=details)
