"""One conversation in the inbox: its messages, replies, notes and files, and its customer."""

from asyncio import gather
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import FormData
from starlette.responses import JSONResponse, Response

from sapa.console.customer_forms import TEXTS as CONTACT
from sapa.console.customer_forms import name_existing
from sapa.console.form_files import list_files, open_stream
from sapa.console.inbox_pages import is_script, path_of, read_screen, watch
from sapa.console.inbox_queue import (
    Team,
    ask,
    build_fingerprint,
    list_next,
    list_typing,
    read_people,
    read_queue,
    read_team,
)
from sapa.console.message_text import build_name_marker, mark_links
from sapa.console.page_request import PageRequest
from sapa.console.rendering import HEADERS
from sapa.console.reply_parts import check_placeholders, split_reply
from sapa.console.roles import EVERYBODY
from sapa.console.routes import LIVE, console, go_to
from sapa.console.snooze_choices import list_choices, read_instant
from sapa.console.template_forms import is_plain, list_places
from sapa.console.ticket_lines import build_lines
from sapa.http.endpoints import Base
from sapa.http.errors import ApiError, Conflict, Invalid, NotFound
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.files.file_types import IMAGE_TYPES, SAFE_TYPES
from sapa.messaging.media import pages as media
from sapa.messaging.messages.types import MESSAGE_ID
from sapa.support.drafts import actions as drafts
from sapa.support.drafts.types import TypedTexts
from sapa.support.mentions import actions as mentions
from sapa.support.saved_replies.placeholders import list_known
from sapa.support.scheduled_replies import actions as scheduled_replies
from sapa.support.scheduled_replies.types import ScheduledReply
from sapa.support.types import TICKET_ID, AnsweredMeanwhile
from sapa.values.json import encode

APPROVING = frozenset(source for source, channel in CHANNELS.items() if channel.capabilities.needs_approved_templates)
"""Channels that send approved templates only."""
MAX_NAME_LENGTH = 255
COMPOSER = "composer"
PARTS = {LIVE: "inbox_live.html", COMPOSER: "composer.html"}
"""What the script asks for: what others change, or the form to reply with."""

COMPOSED = ("body", "note", "mediaUrl", "sendAt", "sentFiles", "later", "resolve")
"""What a refused form of the composer shows again."""

Json = dict[str, Any]


class FileNotThere(Conflict):
    """This file is not available: it is still being downloaded from the channel, or the download failed."""

    code = "FILE_NOT_THERE"
    fix = "Open it again in a minute. If the download failed, ask the customer to send the file again."


@console.get("/{environment}/inbox/{id}", roles=EVERYBODY)
async def show_ticket(page: PageRequest) -> Response:
    params = page.request.query_params
    team = await read_team(page, with_replies=True)
    screen = await read_screen(page, team)
    ticket = await get_ticket(page)  # last, so that it has every message that the queue shows
    if ticket["id"] in screen["queue"]["mentions"]:
        await _mark_read(page, ticket, team.my_id)
    if ticket["customerId"] not in screen["queue"]["people"]:
        screen["queue"]["people"] |= await read_people(page, [ticket])
    typing, scheduled = await _read_typing(page, ticket, team), await _list_scheduled(page, ticket)
    is_latest = not params.get("before")
    is_customer_form = page.request.url.path.endswith(("/save", "/customer"))
    screen |= {
        "ticket": ticket,
        "screen": page.path(f"/inbox/{ticket['id']}"),
        "pane": "customer" if is_customer_form else params.get("pane", ""),
        "typing": typing,
        "scheduled": scheduled,
        "lines": build_lines(ticket, team.names, is_latest),
        "mark_links": mark_links,
        "mark_names": build_name_marker(
            agent["name"] for agent in team.agents if agent["active"] and agent["type"] == "human"
        ),
        "files": await _read_files(page, ticket),
        "images": IMAGE_TYPES,
        "sounds": [type for type in sorted(SAFE_TYPES) if type.startswith("audio/")],
        "videos": [type for type in sorted(SAFE_TYPES) if type.startswith("video/")],
        "can_resend": can_resend,
        "today": screen["clock"].now.isoformat(),
        "is_latest": is_latest,
        "snoozes": list_choices(page, screen["clock"].now),
        "macros": team.choices.macros,
        "seen": build_fingerprint([screen["queue"], team.names, ticket, typing, scheduled]),
    }
    part = params.get("part", "")
    reads = [] if part == LIVE else [_read_composer(page, ticket, team)]
    reads += [] if part in PARTS else [_read_person(page, ticket), _read_ratings(page, ticket)]
    for read in await gather(*reads):
        screen |= read
    return page.show(PARTS.get(part, "inbox.html"), **screen)


async def _mark_read(page: PageRequest, ticket: Json, my_id: int) -> None:
    async with page.context.database.transaction() as tx:
        await mentions.mark_read(tx, page.company_id, my_id, ticket["id"])


@console.get("/{environment}/inbox/{id}/events", roles=EVERYBODY, is_background=True)
async def watch_ticket(page: PageRequest) -> Response:
    """A stream for the page's script; other visitors are redirected to the page."""
    if not is_script(page):
        return go_to(page.path(f"/inbox/{page.request.path_params['id']}"))
    await get_ticket(page)

    async def read() -> object:
        ticket, team = await get_ticket(page), await read_team(page)
        queue = await read_queue(page, team)
        queue["people"] |= await read_people(page, [ticket])
        typing, scheduled = await _read_typing(page, ticket, team), await _list_scheduled(page, ticket)
        return [queue, team.names, ticket, typing, scheduled]

    return await watch(page, read)


@console.post("/{environment}/inbox/{id}/draft", roles=EVERYBODY)
async def keep_draft(page: PageRequest) -> Response:
    """What is typed and not sent, for this agent on any device: a reply, a note or both. Others see that somebody is
    writing a reply, and so does the customer where the channel shows it. A text of another device stays, and is the
    response."""
    ticket, my_id = await get_ticket(page), (await read_team(page)).my_id
    texts = {name: text for name in ("body", "note") for text in page.form_values(name)}
    earlier = {name: page.form_values(f"{name}Was") for name in texts}
    draft = await find_draft(page, ticket["id"], my_id)
    company = await page.api.get_company(page.company_id)
    async with page.context.database.transaction() as tx:
        others = await drafts.save_typed(tx, company, ticket["id"], my_id, texts, earlier)
    is_typing = draft is not None and datetime.now(UTC) - draft.updated_at <= timedelta(seconds=drafts.TYPING_SECONDS)
    if texts.get("body", "").strip() and not is_typing:
        await _show_typing(page, ticket)
    return JSONResponse(others, 409, HEADERS) if others else Response(status_code=204)


async def _show_typing(page: PageRequest, ticket: Json) -> None:
    """Once at the beginning. A channel that cannot is no reason to stop."""
    received = [message["messageId2"] for message in ticket["messages"] if message["direction"] == "in"]
    if received:
        with suppress(ApiError):
            await page.call("POST", f"/messages/{received[-1]}/typing", base=Base.MESSAGING)


async def find_draft(page: PageRequest, ticket_id: str, agent_id: int) -> TypedTexts | None:
    company = await page.api.get_company(page.company_id)
    async with page.context.database.connection() as db:
        return await drafts.find_typed(db, company, ticket_id, agent_id)


@console.post("/{environment}/inbox/{id}/replies", roles=EVERYBODY, shown_by=show_ticket, has_file=True)
async def reply_to_ticket(page: PageRequest) -> Response:
    """A text, files, or both; several messages on a channel whose messages have one file."""
    text, my_id = page.form_value("body").replace("\r\n", "\n"), (await read_team(page)).my_id
    if not is_literal(page):
        check_placeholders(text)
    if page.form_value("later"):
        return await _schedule(page, text, my_id)
    id, once, files = page.request.path_params["id"], page.form_value("once"), await _upload_files(page)
    replies = [{"body": text}] if not files else split_reply((await get_ticket(page))["source"], text, files)
    for number, reply in enumerate(replies):
        body = {"agentId": my_id, **reply, **({} if number else _read_seen(page))}
        try:
            await page.call(
                "POST", f"/tickets/{id}/replies", body=body, base=Base.MESSAGING,
                once=f"{once}-{number}" if once and files else None,
            )  # fmt: skip
        except ApiError:
            if number:
                await save_draft(page, my_id, "")
                _drop_sent(page, replies[:number])
            raise
    await save_draft(page, my_id, "")
    if not page.form_value("resolve"):
        return go_to(path_of(page, id, "#talk"))
    _drop_sent(page, replies)
    await page.call(
        "POST", f"/tickets/{id}/resolve", body={"agentId": my_id}, base=Base.MESSAGING,
        once=f"{once}-resolve" if once else None,
    )  # fmt: skip
    page.say("Sent and resolved")
    return await go_to_next(page, id)


def is_literal(page: PageRequest) -> bool:
    """The agent has seen that a placeholder is left, and sends it as it is."""
    return bool(page.request.query_params.get("literal"))


def _drop_sent(page: PageRequest, replies: list[Json]) -> None:
    """What was sent is in the conversation, and is not offered again: the text, and this many files."""
    page.form = FormData([("sentFiles", str(sum(len(reply.get("attachmentIds", [])) for reply in replies)))])


async def _schedule(page: PageRequest, text: str, my_id: int) -> Response:
    """Sends the reply at one of the usual times, or at the agent's own."""
    id = page.request.path_params["id"]
    if list_files(page):
        raise Invalid.field("attachmentIds", "can only be sent now")
    send_at = read_instant(page, "later", "sendAt")
    body = {"agentId": my_id, "body": text, "sendAt": send_at}
    await page.call("POST", f"/tickets/{id}/scheduled-replies", body=body, base=Base.MESSAGING)
    await save_draft(page, my_id, "")
    page.say("Will be sent {when}", when=page.formats.stamp(send_at))
    return go_to(path_of(page, id, "#talk"))


@console.post("/{environment}/inbox/{id}/unschedule", roles=EVERYBODY, shown_by=show_ticket, says="Not sent")
async def unschedule_reply(page: PageRequest) -> Response:
    """Its text becomes the draft, unless there is one."""
    id, reply_id = page.request.path_params["id"], page.form_value("reply")
    ticket, my_id = await get_ticket(page), (await read_team(page)).my_id
    text = next((one.body for one in await _list_scheduled(page, ticket) if one.id == reply_id), "")
    await page.call("DELETE", f"/scheduled-replies/{reply_id}", base=Base.MESSAGING)
    draft = await find_draft(page, ticket["id"], my_id)
    if draft is None or not draft.body:
        await save_draft(page, my_id, text)
    return go_to(path_of(page, id, "#talk"))


def _read_seen(page: PageRequest) -> Json:
    """What the agent saw when the form was opened: a newer answer of somebody else stops this one, and the form that
    asks whether to send it anyway has seen that answer."""
    seen = page.form_value("seen")
    return {"seenSequence": int(seen)} if seen.isascii() and seen.isdigit() and len(seen) < 10 else {}


async def go_to_next(page: PageRequest, id: str) -> Response:
    """To who waits longest in the queue as the agent sees it, and is not being answered by somebody else."""
    team = await read_team(page)
    for ticket in list_next(await read_queue(page, team), id, team):
        if not (await _read_typing(page, ticket, team))["agents"]:
            return go_to(path_of(page, ticket["id"], "#talk"))
    return go_to(path_of(page))


async def _upload_files(page: PageRequest) -> list[Json]:
    once = page.form_value("once")
    return [
        (
            await page.call(
                "POST", "/attachments", {"filename": (file.filename or "")[-MAX_NAME_LENGTH:]}, base=Base.MESSAGING,
                file=open_stream(page, file),
                once=f"{once}-file-{number}" if once else None,
            )
        )["data"]
        for number, file in enumerate(list_files(page))
    ]  # fmt: skip


def can_resend(message: Json, messages: list[Json]) -> bool:
    """A reply that failed and that no later one repeats. A template has parameters that are not kept, and so has a
    message with the address of a file."""
    is_whole = not message["templateId"] and (message["attachments"] or (message["body"] and not message["mediaUrl"]))
    if message["direction"] != "out" or message["status"] != "failed" or not is_whole:
        return False
    alike = [one["messageId2"] for one in messages if _read_content(one) == _read_content(message)]
    return alike[-1:] in ([], [message["messageId2"]])


def _read_content(message: Json) -> tuple[str, str | None, list[str]]:
    return message["direction"], message["body"], [file["id"] for file in message["attachments"]]


@console.post("/{environment}/inbox/{id}/again", roles=EVERYBODY, shown_by=show_ticket, says="Sent again")
async def send_again(page: PageRequest) -> Response:
    """The text and the files of a message that failed, as a new one."""
    id, my_id = page.request.path_params["id"], (await read_team(page)).my_id
    message = await _get_message(page, page.form_value("message"))
    if not can_resend(message, []):
        raise NotFound
    body = {
        "agentId": my_id,
        "body": message["body"],
        "attachmentIds": [file["id"] for file in message["attachments"]],
    }
    await page.call("POST", f"/tickets/{id}/replies", body=body, base=Base.MESSAGING)
    return go_to(path_of(page, id, "#talk"))


@console.post("/{environment}/inbox/{id}/notes", roles=EVERYBODY, shown_by=show_ticket, says="Note added")
async def add_note(page: PageRequest) -> Response:
    id, text = page.request.path_params["id"], page.form_value("note").replace("\r\n", "\n")
    my_id = (await read_team(page)).my_id
    body = {"agentId": my_id, "body": text}
    try:
        await page.call("POST", f"/tickets/{id}/notes", body=body, base=Base.MESSAGING)
    except Invalid as error:
        raise Invalid.field("note", error.details[0].message if error.details else error.message) from None
    await save_note_draft(page, my_id, "")
    return go_to(path_of(page, id, "#talk"))


@console.post(
    "/{environment}/inbox/{id}/template", roles=EVERYBODY, shown_by=show_ticket, has_file=True, says="Template sent"
)
async def send_template(page: PageRequest) -> Response:
    ticket, team = await get_ticket(page), await read_team(page)
    template = (await ask(page, f"/templates/{page.form_value('template')}"))["data"]
    files = await _upload_files(page)
    body = {
        "to": ticket["clientNumber"],
        "sources": ticket["source"],
        "template_name": template["name"],
        "template_source": template["source"],
        "language": template["language"],
        "params": page.form_values("param"),
        "mediaUrl": page.form_value("mediaUrl") or None,
        "components": {"header": {"attachmentId": files[0]["id"]}} if files else None,
        "agentId": team.my_id,
    }
    await page.call("POST", "/messages/send-template", body=body, base=Base.MESSAGING)
    return go_to(path_of(page, ticket["id"], "#talk"))


@console.get("/{environment}/inbox/{id}/files/{message}", roles=EVERYBODY)
async def open_file(page: PageRequest) -> Response:
    """Redirects to a file of this ticket, at an address that expires."""
    message = await _get_message(page, page.request.path_params["message"])
    files = (await ask(page, f"/messages/{message['messageId2']}/media"))["data"]["files"]
    params = page.request.query_params
    wanted = [file for place, file in enumerate(files) if str(place) == params.get("number", "0") and file["url"]]
    if not wanted:
        raise FileNotThere
    # On this site, whatever its public address is: a page shows pictures of its own only.
    if params.get("thumbnail"):
        return go_to(urlsplit(wanted[0]["thumbnailUrl"] or wanted[0]["url"]).path)
    return go_to(urlsplit(wanted[0]["url"]).path if params.get("inline") else wanted[0]["url"])


async def _get_message(page: PageRequest, id: str) -> Json:
    """A message of this ticket."""
    if not MESSAGE_ID.matches(id):
        raise NotFound
    message: Json = (await ask(page, f"/messages/{id}"))["data"]
    if message["ticketId"] != page.request.path_params["id"]:
        raise NotFound
    return message


async def get_ticket(page: PageRequest) -> Json:
    id, before = page.request.path_params["id"], page.request.query_params.get("before", "")
    if not TICKET_ID.matches(id):
        raise NotFound
    found: Json = (await ask(page, f"/tickets/{id}", {"before": before}))["data"]
    return found


async def save_draft(page: PageRequest, agent_id: int, text: str) -> None:
    company = await page.api.get_company(page.company_id)
    async with page.context.database.transaction() as tx:
        await drafts.save(tx, company, page.request.path_params["id"], agent_id, text)


async def save_note_draft(page: PageRequest, agent_id: int, text: str) -> None:
    company = await page.api.get_company(page.company_id)
    async with page.context.database.transaction() as tx:
        await drafts.save_note(tx, company, page.request.path_params["id"], agent_id, text)


async def _read_typing(page: PageRequest, ticket: Json, team: Team) -> Json:
    """The other agents who are writing here, and whether the customer is, where the channel shows it."""
    company = await page.api.get_company(page.company_id)
    async with page.context.database.connection() as db:
        writing = await drafts.list_typing(db, company, ticket["id"], team.me["id"] if team.me else 0)
    return {"agents": writing, "customer": bool(await list_typing(page, [ticket]))}


async def _list_scheduled(page: PageRequest, ticket: Json) -> list[ScheduledReply]:
    company = await page.api.get_company(page.company_id)
    async with page.context.database.connection() as db:
        return await scheduled_replies.list_of_ticket(db, company, ticket["id"])


async def _read_composer(page: PageRequest, ticket: Json, team: Team) -> Json:
    """The form to reply with: what was refused, else a saved reply that was chosen, else the drafts."""
    chosen = page.request.query_params.get("reply")
    values = {name: page.form_value(name) for name in COMPOSED}
    draft = await find_draft(page, ticket["id"], team.my_id) if team.me else None
    if draft and "note" not in page.form:
        values["note"] = draft.note
    if team.me and chosen and "body" not in page.form:
        query = {"agentId": str(team.my_id)}
        values["body"] = (await ask(page, f"/tickets/{ticket['id']}/saved-replies/{chosen}", query))["data"]["text"]
    elif draft and "body" not in page.form:
        values["body"] = draft.body
    return {
        "given": {"name": page.form_value("name") or page.session.name, **values},
        "params": page.form_values("param"),
        "has_placeholder": bool(list_known(page.form_value("body"))),
        "answered": isinstance(page.error, AnsweredMeanwhile),
        "saved_replies": team.choices.saved_replies,
        **await _read_templates(page, ticket),
    }


async def _read_files(page: PageRequest, ticket: Json) -> dict[str, list[Json]]:
    """The files of messages that we hold, or fetch."""
    with_files = [
        one["messageId2"]
        for one in ticket["messages"]
        if one["attachments"] or (one["direction"] == "in" and one["mediaUrl"])
    ]
    if not with_files:
        return {}
    company = await page.api.get_company(page.company_id)
    async with page.calls, page.context.database.connection() as db:
        found = await media.describe_all(page.context, db, company, with_files)
    files: dict[str, list[Json]] = msgspec.json.decode(encode(found))
    return files


async def _read_templates(page: PageRequest, ticket: Json) -> Json:
    """The templates that can be sent now, and the chosen one with its parameters."""
    approved = {"status": "APPROVED"} if ticket["source"] in APPROVING else {}
    found = (await ask(page, "/templates", {"limit": "100", **approved}))["data"]
    templates = [template for template in found if is_plain(template)]
    wanted = page.form_value("template") or page.request.query_params.get("template", "")
    chosen = next((template for template in templates if template["id"] == wanted), None)
    places = list_places(chosen, page.language) if chosen else []
    return {"templates": templates, "chosen": chosen, "places": places}


async def _read_person(page: PageRequest, ticket: Json) -> Json:
    """The customer, if the contact is one and still exists; else those whom the agent looks for."""
    id, find = ticket["customerId"], page.request.query_params.get("find", "").strip()
    empty: Json = {"customer": None, "orders": [], "order_total": 0, "wallet": None, "parcels": [], "earlier": []}
    found = (await page.call("GET", "/customers", {"search": find, "limit": "8"}))["data"] if find else []
    existing_id = name_existing(page)
    existing = (await page.call("GET", f"/customers/{existing_id}"))["data"] if existing_id else None
    contact = {name: page.form_value(name) for name in CONTACT}
    if "firstName" not in page.form:
        contact |= _read_contact(ticket)
    empty |= {"find": find, "found": found, "contact": contact, "existing": existing}
    empty["server"] = page.context.settings.server.address
    if id is None:
        return empty
    try:
        customer, wallet, tickets, orders = await gather(
            page.call("GET", f"/customers/{id}"),
            page.call("GET", f"/loyalty/customers/{id}/wallet"),
            ask(page, "/tickets", {"customerId": id, "limit": "10", "sort": "createdAt:desc"}),
            page.call("GET", "/orders", {"customerId": id, "limit": "5"}),
        )
    except NotFound:
        return empty
    newest = {"orderId": orders["data"][0]["id"], "limit": "3"} if orders["data"] else None
    earlier = [one for one in tickets["data"] if one["id"] != ticket["id"]]
    company = await page.api.get_company(page.company_id)
    async with page.context.database.connection() as db:
        waiting = await scheduled_replies.list_waiting_tickets(db, company, [one["id"] for one in earlier])
    return empty | {
        "customer": customer["data"],
        "orders": orders["data"],
        "order_total": orders["meta"]["total"],
        "wallet": wallet["data"],
        "parcels": (await page.call("GET", "/shipping/shipments", newest))["data"] if newest else [],
        "earlier": earlier,
        "with_scheduled": waiting,
    }


def _read_contact(ticket: Json) -> Json:
    """A customer as the channel and the visitor say."""
    first_name, _, last_name = (ticket["clientName"] or ticket["statedName"] or "").partition(" ")
    stated = ticket["statedContact"] or ""
    return {
        "firstName": first_name,
        "lastName": last_name,
        "email": stated if "@" in stated else "",
        "phoneNumber": "" if "@" in stated else stated,
    }


async def _read_ratings(page: PageRequest, ticket: Json) -> Json:
    """What the customer wrote beside the scores, newest first."""
    asked = {"ticketId": ticket["id"], "status": "rated", "limit": "3"}
    return {"ratings": (await ask(page, "/ratings", asked))["data"] if ticket["rating"] else []}
