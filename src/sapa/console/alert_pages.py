"""What waits, in numbers: for the tab's title, the sound and the desktop notification of the script."""

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


@console.get("/{environment}/alerts", roles=EVERYBODY, is_background=True)
async def count_alerts(page: PageRequest) -> Response:
    session = page.session
    async with page.context.database.connection() as db:
        alerts = await profile.get_alerts(db, session.organisation_id, session.user_id)
    counts = {kind: page.counts[path].number if path in page.counts else 0 for kind, path in PATHS.items()}
    counts |= await _count_own(page)
    wanted = {kind: count for kind, count in counts.items() if kind in alerts.kinds}
    body = {"counts": wanted, "sound": alerts.sound, "desktop": alerts.desktop}
    return JSONResponse(body, headers=HEADERS)


async def _count_own(page: PageRequest) -> dict[str, int]:
    """Customers who wait in the person's own conversations, and conversations that mention the person."""
    found = (await ask(page, "/agents", {"userId": str(page.session.user_id)}))["data"]
    if not found:
        return {"assigned": 0, "mentioned": 0}
    id = found[0]["id"]
    query = {"agentId": str(id), "status": "assigned", "waiting": "true", "limit": "1"}
    async with page.context.database.connection() as db:
        mentioned = await mentions.count(db, page.company_id, id)
    return {"assigned": (await ask(page, "/tickets", query))["meta"]["total"], "mentioned": mentioned}
