"""What an agent does with a conversation besides replying: owner, labels, snooze, macros, merging and its end."""

from typing import Any

from starlette.responses import Response

from sapa.console.customer_forms import TEXTS as CONTACT
from sapa.console.fields import gather
from sapa.console.inbox_pages import parse_agent, path_of
from sapa.console.inbox_queue import read_team
from sapa.console.page_request import PageRequest
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console, go_to
from sapa.console.snooze_choices import read_instant
from sapa.console.ticket_pages import find_draft, go_to_next, save_draft, show_ticket
from sapa.http.endpoints import Base
from sapa.http.errors import FieldError, Invalid

Json = dict[str, Any]


@console.post("/{environment}/inbox/{id}/assign", roles=EVERYBODY, shown_by=show_ticket, says="Assigned")
async def assign_ticket(page: PageRequest) -> Response:
    """Of several agents who take one from the queue at once, one gets it. Who leaves it to another opens the next."""
    is_from_queue = page.form_value("agentId") == "me" and page.form.get("owner") == ""
    response = await _do(page, "take" if is_from_queue else "assign", {"agentId": await _find_chosen(page)})
    return await go_to_next(page, page.request.path_params["id"]) if page.form_value("next") else response


@console.post("/{environment}/inbox/{id}/handover", roles=EVERYBODY, shown_by=show_ticket, says="Transferred")
async def hand_over_ticket(page: PageRequest) -> Response:
    return await _do(page, "handover", {"agentId": await _find_chosen(page)})


@console.post("/{environment}/inbox/{id}/resolve", roles=EVERYBODY, shown_by=show_ticket, says="Resolved")
async def resolve_ticket(page: PageRequest) -> Response:
    """Opens the next one."""
    await _do(page, "resolve", {"agentId": (await read_team(page)).my_id})
    return await go_to_next(page, page.request.path_params["id"])


@console.post("/{environment}/inbox/{id}/reopen", roles=EVERYBODY, shown_by=show_ticket, says="Reopened")
async def reopen_ticket(page: PageRequest) -> Response:
    return await _do(page, "reopen", None)


@console.post("/{environment}/inbox/{id}/update", roles=EVERYBODY, shown_by=show_ticket, says="Saved")
async def update_ticket(page: PageRequest) -> Response:
    """The fields that the form has: labels, priority, team or snooze."""
    form, team = page.form, await read_team(page)
    patch: Json = {"actorId": team.me["id"] if team.me else None}
    if "labels" in form:
        patch["labelIds"] = [id for id in page.form_values("labels") if id]
    if "priority" in form:
        patch["priority"] = page.form_value("priority")
    if "teamId" in form:
        patch["teamId"] = page.form_value("teamId") or None
    if "snooze" in form:
        patch["snoozedUntil"] = read_instant(page, "snooze", "until")
    id = page.request.path_params["id"]
    try:
        await page.call("PUT", f"/tickets/{id}", body=patch, base=Base.MESSAGING)
    except Invalid as error:
        details = error.details or []
        named = [FieldError("until", one.message) if one.field == "snoozedUntil" else one for one in details]
        raise Invalid(error.message, details=named) from None
    if patch.get("snoozedUntil"):
        page.say("Snoozed until {when}", when=page.formats.stamp(patch["snoozedUntil"]))
        return await go_to_next(page, id)
    return go_to(path_of(page, id))


@console.post("/{environment}/inbox/{id}/macro", roles=EVERYBODY, shown_by=show_ticket, says="Macro applied")
async def apply_macro(page: PageRequest) -> Response:
    """Its text becomes the draft, after what is there already, for the agent to send."""
    id, my_id = page.request.path_params["id"], (await read_team(page)).my_id
    path = f"/tickets/{id}/macros/{page.form_value('macro')}"
    applied = (await page.call("POST", path, body={"agentId": my_id}, base=Base.MESSAGING))["data"]
    if applied["reply"]:
        draft = await find_draft(page, id, my_id)
        typed = [draft.body] if draft and draft.body else []
        await save_draft(page, my_id, "\n".join([*typed, applied["reply"]["text"]]))
        if missing := applied["reply"]["missing"]:
            page.say("The reply waits in the box: fill in {names}", names=", ".join(f"{{{name}}}" for name in missing))
        return go_to(path_of(page, id, "#talk"))
    is_gone = applied["ticket"]["status"] == "resolved" or applied["ticket"]["snoozedUntil"]
    return await go_to_next(page, id) if is_gone else go_to(path_of(page, id))


@console.post("/{environment}/inbox/{id}/merge", roles=EVERYBODY, shown_by=show_ticket, says="Merged")
async def merge_tickets(page: PageRequest) -> Response:
    return await _do(page, "merge", {"ticketId": page.form_value("ticket")})


@console.post("/{environment}/inbox/{id}/customer", roles=EVERYBODY, shown_by=show_ticket, says="Linked")
async def link_customer(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    body = {"customerId": page.form_value("customer")}
    await page.call("PUT", f"/tickets/{id}/customer", body=body, base=Base.MESSAGING)
    return go_to(path_of(page, id))


@console.post("/{environment}/inbox/{id}/save", roles=EVERYBODY, shown_by=show_ticket, says="Customer added")
async def save_as_customer(page: PageRequest) -> Response:
    """A customer of the contact, with the phone number or email that the agent asked for."""
    id, body = page.request.path_params["id"], gather(page, CONTACT)
    customer = (await page.call("POST", "/customers", body=body))["data"]
    link = {"customerId": customer["id"]}
    await page.call("PUT", f"/tickets/{id}/customer", body=link, base=Base.MESSAGING)
    return go_to(path_of(page, id))


async def _do(page: PageRequest, verb: str, body: object) -> Response:
    """A form that is sent twice changes the ticket once."""
    id = page.request.path_params["id"]
    await page.call("POST", f"/tickets/{id}/{verb}", body=body, base=Base.MESSAGING)
    return go_to(path_of(page, id))


async def _find_chosen(page: PageRequest) -> int | None:
    """The chosen agent; None for no agent."""
    text = page.form_value("agentId")
    if text == "me":
        return (await read_team(page)).my_id
    return parse_agent(text) if text else None
