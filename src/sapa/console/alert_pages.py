"""What waits, in numbers: for the tab's title, the sound and the desktop notification of the script."""

from starlette.responses import JSONResponse, Response

from sapa.console.inbox_queue import ask
from sapa.console.page_request import PageRequest
from sapa.console.rendering import HEADERS
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console
from sapa.people.profile import actions as profile
from sapa.support.mentions import actions as mentions

PATHS = {"order": "/orders", "shipment": "/shipments"}
"""The entries of the menu that count the other kinds."""
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
    lists = {"unassigned": await ask(page, "/tickets", {"status": "open", "snoozed": "false", **NEWEST})}
    found = (await ask(page, "/agents", {"userId": str(page.session.user_id)}))["data"]
    counts |= {"assigned": 0, "mentioned": 0}
    if found:
        lists["assigned"] = await ask(
            page, "/tickets", {"agentId": str(found[0]["id"]), "status": "assigned", **NEWEST}
        )
        async with page.context.database.connection() as db:
            counts["mentioned"] = await mentions.count(db, page.company_id, found[0]["id"])
    counts |= {kind: listed["meta"]["total"] for kind, listed in lists.items()}
    newest = {kind: listed["data"][0] for kind, listed in lists.items() if listed["data"]}
    body = {
        "counts": {kind: count for kind, count in counts.items() if kind in alerts.kinds},
        # Channels give times in whole seconds; ids grow with time, too.
        "newest": {kind: f"{ticket['waitingSince']} {ticket['id']}" for kind, ticket in newest.items()},
        "places": {
            kind: page.path(f"/inbox/{newest[kind]['id']}" if kind in newest else PLACES[kind]) for kind in counts
        },
        "sound": alerts.sound,
        "desktop": alerts.desktop,
    }
    return JSONResponse(body, headers=HEADERS)
