"""One ticket: the conversation, its actions and its customer."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import FormData, UploadFile
from starlette.responses import Response

from sapa.console.inbox_pages import Team, build_fingerprint, is_script, list_channels, read_clock, read_team, watch
from sapa.console.page_request import PageRequest
from sapa.console.reply_parts import split_reply
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console, go_to
from sapa.console.template_forms import is_plain, list_places
from sapa.console.ticket_lines import build_lines
from sapa.http.endpoints import Base
from sapa.http.errors import ApiError, Conflict, Invalid, NotFound
from sapa.http.uploads import FileStream
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.files.file_types import IMAGE_TYPES

APPROVING = frozenset(source for source, channel in CHANNELS.items() if channel.capabilities.needs_approved_templates)
"""Channels that send approved templates only."""
MAX_NAME_LENGTH = 255
PIECE_BYTES = 65_536

Json = dict[str, Any]


class FileNotThere(Conflict):
    """This file is not available: it is still being downloaded from the channel, or the download failed."""

    code = "FILE_NOT_THERE"
    fix = "Open it again in a minute. If the download failed, ask the customer to send the file again."


@console.get("/{environment}/inbox/{id}", roles=EVERYBODY)
async def show_ticket(page: PageRequest) -> Response:
    params = page.request.query_params
    ticket, team = await _get_ticket(page), await read_team(page)
    is_latest = not params.get("before")
    context: Json = {
        "ticket": ticket,
        "team": team,
        "lines": build_lines(ticket, team.names, is_latest),
        "files": await _read_files(page, ticket),
        "is_latest": is_latest,
        "clock": await read_clock(page),
        "channels": list_channels(),
        "seen": _build_fingerprint(ticket, team),
        "given": {name: page.form_value(name) for name in ("body", "note", "name", "mediaUrl")},
        "params": page.form_values("param"),
        "images": IMAGE_TYPES,
    }
    if params.get("part"):
        return page.show("ticket_part.html", **context)
    others = await _read_templates(page, ticket) | await _read_person(page, ticket)
    return page.show("ticket.html", **context, **others)


@console.get("/{environment}/inbox/{id}/events", roles=EVERYBODY)
async def watch_ticket(page: PageRequest) -> Response:
    """A stream for the page's script; other visitors are redirected to the page."""
    id = page.request.path_params["id"]
    if not is_script(page):
        return go_to(page.path(f"/inbox/{id}"))
    await _get_ticket(page)

    async def read() -> object:
        return _list_shown(await _get_ticket(page), await read_team(page))

    return watch(page, read)


@console.post("/{environment}/inbox/{id}/replies", roles=EVERYBODY, shown_by=show_ticket, has_file=True)
async def reply_to_ticket(page: PageRequest) -> Response:
    """A text, files, or both; several messages on a channel whose messages have one file."""
    text, my_id = page.form_value("body").replace("\r\n", "\n"), (await read_team(page)).my_id
    files = await _upload_files(page)
    if not files:
        return await _do(page, "replies", {"agentId": my_id, "body": text}, "#talk")
    id, once, source = page.request.path_params["id"], page.form_value("once"), (await _get_ticket(page))["source"]
    for number, reply in enumerate(split_reply(source, text, files)):
        try:
            await page.call(
                "POST", f"/tickets/{id}/replies", body={"agentId": my_id, **reply}, base=Base.MESSAGING,
                once=f"{once}-{number}" if once else None,
            )  # fmt: skip
        except ApiError:
            if number:  # what was sent is in the conversation, and is not offered again
                page.form = FormData()
            raise
    return go_to(page.path(f"/inbox/{id}#talk"))


async def _upload_files(page: PageRequest) -> list[Json]:
    once = page.form_value("once")
    chosen = [file for file in page.form.getlist("files") if isinstance(file, UploadFile) and file.filename]
    return [
        (
            await page.call(
                "POST", "/attachments", {"filename": (file.filename or "")[-MAX_NAME_LENGTH:]}, base=Base.MESSAGING,
                file=FileStream(_read_pieces(file), page.context.settings.files.most_bytes, file.size),
                once=f"{once}-file-{number}" if once else None,
            )
        )["data"]
        for number, file in enumerate(chosen)
    ]  # fmt: skip


async def _read_pieces(file: UploadFile) -> AsyncIterator[bytes]:
    while piece := await file.read(PIECE_BYTES):
        yield piece


@console.post("/{environment}/inbox/{id}/notes", roles=EVERYBODY, shown_by=show_ticket, says="Note added")
async def add_note(page: PageRequest) -> Response:
    text = page.form_value("note").replace("\r\n", "\n")
    try:
        return await _do(page, "notes", {"agentId": (await read_team(page)).my_id, "body": text}, "#talk")
    except Invalid as error:
        raise Invalid.field("note", error.details[0].message if error.details else error.message) from None


@console.post("/{environment}/inbox/{id}/assign", roles=EVERYBODY, shown_by=show_ticket, says="Assigned")
async def assign_ticket(page: PageRequest) -> Response:
    return await _do(page, "assign", {"agentId": await _find_chosen(page)})


@console.post("/{environment}/inbox/{id}/handover", roles=EVERYBODY, shown_by=show_ticket, says="Transferred")
async def hand_over_ticket(page: PageRequest) -> Response:
    return await _do(page, "handover", {"agentId": await _find_chosen(page)})


@console.post("/{environment}/inbox/{id}/resolve", roles=EVERYBODY, shown_by=show_ticket, says="Resolved")
async def resolve_ticket(page: PageRequest) -> Response:
    return await _do(page, "resolve", {"agentId": (await read_team(page)).my_id})


@console.post("/{environment}/inbox/{id}/reopen", roles=EVERYBODY, shown_by=show_ticket, says="Reopened")
async def reopen_ticket(page: PageRequest) -> Response:
    return await _do(page, "reopen", None)


@console.post(
    "/{environment}/inbox/{id}/template", roles=EVERYBODY, shown_by=show_ticket, has_file=True, says="Template sent"
)
async def send_template(page: PageRequest) -> Response:
    ticket, team = await _get_ticket(page), await read_team(page)
    template = (await _ask(page, "GET", f"/templates/{page.form_value('template')}"))["data"]
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
    return go_to(page.path(f"/inbox/{ticket['id']}#talk"))


@console.get("/{environment}/inbox/{id}/files/{message}", roles=EVERYBODY)
async def open_file(page: PageRequest) -> Response:
    """Redirects to a file of this ticket, at an address that expires."""
    ticket_id, message_id = page.request.path_params["id"], page.request.path_params["message"]
    message = (await _ask(page, "GET", f"/messages/{message_id}"))["data"]
    if message["ticketId"] != ticket_id:
        raise NotFound
    files = (await _ask(page, "GET", f"/messages/{message_id}/media"))["data"]["files"]
    params = page.request.query_params
    wanted = [file for place, file in enumerate(files) if str(place) == params.get("number", "0") and file["url"]]
    if not wanted:
        raise FileNotThere
    if params.get("thumbnail"):  # on this site, whatever its public address is: a page shows pictures of its own only
        return go_to(urlsplit(wanted[0]["thumbnailUrl"] or wanted[0]["url"]).path)
    return go_to(wanted[0]["url"])


async def _ask(page: PageRequest, method: str, path: str, query: dict[str, str] | None = None) -> Any:
    return await page.call(method, path, query, base=Base.MESSAGING)


async def _do(page: PageRequest, verb: str, body: object, place: str = "") -> Response:
    """A form that is sent twice changes the ticket once."""
    id = page.request.path_params["id"]
    await page.call("POST", f"/tickets/{id}/{verb}", body=body, base=Base.MESSAGING)
    return go_to(page.path(f"/inbox/{id}{place}"))


async def _get_ticket(page: PageRequest) -> Json:
    id, before = page.request.path_params["id"], page.request.query_params.get("before", "")
    found: Json = (await _ask(page, "GET", f"/tickets/{id}", {"before": before}))["data"]
    return found


async def _find_chosen(page: PageRequest) -> int | None:
    """The chosen agent; None for no agent."""
    text = page.form_value("agentId")
    if text == "me":
        return (await read_team(page)).my_id
    if text and not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Invalid.field("agentId", "must be an agent of this company")
    return int(text) if text else None


def _list_shown(ticket: Json, team: Team) -> object:
    return [ticket, team.names, team.me]


def _build_fingerprint(ticket: Json, team: Team) -> str:
    return build_fingerprint(_list_shown(ticket, team))


async def _read_files(page: PageRequest, ticket: Json) -> dict[str, list[Json]]:
    """The files of messages that we hold, or fetch."""
    with_files = [
        one["messageId2"]
        for one in ticket["messages"]
        if one["attachments"] or (one["direction"] == "in" and one["mediaUrl"])
    ]
    return {id: (await _ask(page, "GET", f"/messages/{id}/media"))["data"]["files"] for id in with_files}


async def _read_templates(page: PageRequest, ticket: Json) -> Json:
    """The templates that can be sent now, and the chosen one with its parameters."""
    approved = {"status": "APPROVED"} if ticket["source"] in APPROVING else {}
    found = (await _ask(page, "GET", "/templates", {"limit": "100", **approved}))["data"]
    templates = [template for template in found if is_plain(template)]
    wanted = page.form_value("template") or page.request.query_params.get("template", "")
    chosen = next((template for template in templates if template["id"] == wanted), None)
    places = list_places(chosen) if chosen else []
    return {"templates": templates, "chosen": chosen, "places": places}


async def _read_person(page: PageRequest, ticket: Json) -> Json:
    """The customer, if the contact is one and still exists."""
    id = ticket["customerId"]
    empty: Json = {"customer": None, "orders": [], "wallet": None, "timeline": []}
    if id is None:
        return empty
    try:
        customer = (await page.call("GET", f"/customers/{id}"))["data"]
    except NotFound:
        return empty
    orders = await page.call("GET", "/orders", {"customerId": id, "limit": "5"})
    wallet = (await page.call("GET", f"/loyalty/customers/{id}/wallet"))["data"]
    timeline = await page.call("GET", f"/loyalty/customers/{id}/timeline", {"limit": "8"})
    return {"customer": customer, "orders": orders["data"], "wallet": wallet, "timeline": timeline["data"]}
