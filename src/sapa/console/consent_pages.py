"""Consent: what a customer decided, recorded with its proof; and the company's settings for it."""

from typing import Any

from starlette.responses import Response

from sapa.console.customer_pages import show_customer
from sapa.console.fields import gather
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS, EVERYBODY
from sapa.console.routes import console, go_to

PROOF = ("proof.text", "proof.place", "proof.reference")
AUTOMATIC = ("subscribed", "not_refused")
PATH = "/settings/consent"
WORDS = ("stopWords", "startWords")
REPLIES = ("stopReply", "startReply")


@console.post(
    "/{environment}/customers/{id}/consents", roles=EVERYBODY, shown_by=show_customer, says="Consent recorded"
)
async def record_consent(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    body = gather(page, ("app", "status", *PROOF))
    noted = ("consent.recorded", f"{id} {body['app']} {body['status']}")
    await page.call("POST", f"/customers/{id}/consents", body=body, noted=noted)
    return go_to(page.path(f"/customers/{id}?tab=consent"))


@console.get("/{environment}/settings/consent", roles=DEVELOPERS)
async def show_consent_settings(page: PageRequest) -> Response:
    settings = (await page.call("GET", "/consent-settings"))["data"]
    shown = {name: "\n".join(settings[name]) for name in WORDS} | {name: settings[name] or "" for name in REPLIES}
    names = (*WORDS, *REPLIES, "automaticMarketing")
    typed = {name: page.form_value(name) for name in names}
    stored = shown | {"automaticMarketing": settings["automaticMarketing"]}
    return page.show("consent_settings.html", settings=typed if page.form else stored, automatic=AUTOMATIC)


@console.post("/{environment}/settings/consent", roles=DEVELOPERS, shown_by=show_consent_settings, says="Saved")
async def change_consent_settings(page: PageRequest) -> Response:
    body: dict[str, Any] = {name: [word.strip() for word in page.form_value(name).split("\n") if word.strip()]
                            for name in WORDS}  # fmt: skip
    body |= {name: page.form_value(name) or None for name in REPLIES}
    body["automaticMarketing"] = page.form_value("automaticMarketing")
    await page.call("PUT", "/consent-settings", body=body, noted=("settings.changed", "consent"))
    return go_to(page.path(PATH))
