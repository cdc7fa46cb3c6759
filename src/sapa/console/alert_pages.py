"""What waits, in numbers: for the tab's title, the sound and the desktop notification of the script."""

from typing import Any

from starlette.responses import JSONResponse, Response

from sapa.console.inbox_queue import ask
from sapa.console.page_request import PageRequest
from sapa.console.rendering import HEADERS
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console
from sapa.people.profile import actions as profile
from sapa.support.mentions import actions as mentions

PATHS = {"unassigned": "/inbox", "order": "/orders", "shipment": "/shipments"}
"""The entry of the menu that counts each kind."""
PLACES = {
    "unassigned": "/inbox?view=unassigned",
    "assigned": "/inbox?view=mine",
    "mentioned": "/inbox",
    "order": "/orders?status=active&financialStatus=paid&fulfillmentStatus=unfulfilled",
    "shipment": "/shipments?needsAction=true",
}
"""What a notification of each kind opens, if it is not one conversation."""
NEWEST = {"waiting": "true", "sort": "waitingSince:desc", "limit": "1"}


@console.get("/{environment}/alerts", roles=EVERYBODY, is_background=True)
async def count_alerts(page: PageRequest) -> Response:
    session = page.session
    async with page.context.database.connection() as db:
        alerts = await profile.get_alerts(db, session.organisation_id, session.user_id)
    counts = {kind: page.counts[path].number if path in page.counts else 0 for kind, path in PATHS.items()}
    newest = {"unassigned": (await ask(page, "/tickets", {"status": "open", "snoozed": "false", **NEWEST}))["data"]}
    found = (await ask(page, "/agents", {"userId": str(page.session.user_id)}))["data"]
    counts |= {"assigned": 0, "mentioned": 0}
    if found:
        own = await ask(page, "/tickets", {"agentId": str(found[0]["id"]), "status": "assigned", **NEWEST})
        newest["assigned"], counts["assigned"] = own["data"], own["meta"]["total"]
        async with page.context.database.connection() as db:
            counts["mentioned"] = await mentions.count(db, page.company_id, found[0]["id"])
    body = {
        "counts": {kind: count for kind, count in counts.items() if kind in alerts.kinds},
        "newest": {kind: tickets[0]["waitingSince"] for kind, tickets in newest.items() if tickets},
        "places": {kind: page.path(_name_place(kind, newest.get(kind, []))) for kind in counts},
        "sound": alerts.sound,
        "desktop": alerts.desktop,
    }
    return JSONResponse(body, headers=HEADERS)


def _name_place(kind: str, tickets: list[Any]) -> str:
    return f"/inbox/{tickets[0]['id']}" if tickets else PLACES[kind]
