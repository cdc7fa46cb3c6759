"""Settings: channels. Secrets are entered and never shown again."""

from contextlib import suppress

import msgspec
from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console, go_to
from sapa.console.translations import translate
from sapa.http.endpoints import Base
from sapa.http.errors import NotFound
from sapa.messaging.channel_events import actions as channel_events
from sapa.messaging.channel_events.types import ChannelEvent
from sapa.messaging.channel_status import actions as channel_status
from sapa.messaging.channels.guide import GuideStep
from sapa.messaging.channels.interface import BadAccount
from sapa.messaging.connections import actions as connections
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.connections.types import ChannelConnection
from sapa.messaging.inbound import set_aside
from sapa.messaging.messages.types import Channel
from sapa.outbound.client import NotSent, Unclear
from sapa.values.company import Company

MAX_DIGITS = 19
QUALITIES = {"GREEN": "good", "YELLOW": "waiting", "RED": "bad"}
FORMS = {"": "nothing", "name": "their name", "contact": "name, and email or phone"}
"""What the web chat asks before the first message."""
TEST_TEXT = "Hello! This is a test message from our shop."
RECIPIENTS = {"phone": "A phone number, such as your own.", "email": "An email address, such as your own."}
KNOWN_RECIPIENT = "The ID of a person who wrote to you; the newest is filled in."
"""Whom a test message can be sent to, by the channel's kind of ids."""
SEVERITIES = {"info": "over", "warning": "waiting", "critical": "bad"}
"""How they look."""


@console.get("/{environment}/channels", roles=DEVELOPERS)
async def list_channels(page: PageRequest) -> Response:
    company = await _get_company(page)
    stored = await _list_present(page, company)
    channels = [(channel, stored.get(channel.source)) for channel in connections.list_channels()]
    async with page.context.database.connection() as db:
        failed = await set_aside.count(db, company)
    return page.show("channels.html", channels=channels, failed=failed)


@console.get("/{environment}/channels/{id}", roles=DEVELOPERS)
async def show_channel(page: PageRequest) -> Response:
    channel, company = _get_channel(page), await _get_company(page)
    info = (await _list_present(page, company)).get(channel.source)
    is_played = company.is_test
    async with page.context.database.connection() as db:
        failed = await set_aside.list_latest(db, company, info.id) if info else []
        events = await channel_events.list_latest(db, company, info.id) if info else []
        statuses = await channel_status.list_statuses(db, company)
        snippet = await connections.find_snippet(page.context, db, company, channel.source)
    received = await page.call("GET", "/tickets", {"channel": channel.names[0], "limit": "1"}, base=Base.MESSAGING)
    newest = received["data"][0]["clientNumber"] if received["data"] else ""
    return page.show(
        "channel.html",
        channel=channel,
        info=info,
        guide=channel.guide,
        done=[_is_done(page, channel, step, info) for step in channel.guide.steps],
        has_received=received["meta"]["total"] > 0,
        snippet=snippet,
        forms=FORMS,
        status=next((status for status in statuses if info and status.id == info.id), None),
        qualities=QUALITIES,
        severities=SEVERITIES,
        failed=failed,
        events=[_show_event(event) for event in events],
        labels={field.name: field.label for field in channel.fields},
        is_played=is_played,
        hook=get_environment(company).accounts.find_hook(page.context, company, channel.source),
        simulator=get_environment(company).accounts.find_simulator(page.context, company, channel.source),
        given=_list_plain(page, channel, info),
        test={
            "to": page.form_value("to") or newest,
            "message": page.form_value("message") or translate(page.language, TEST_TEXT),
            "hint": RECIPIENTS.get(channel.capabilities.identities[0].name, KNOWN_RECIPIENT),
            "has_window": channel.capabilities.window is not None,
        },
        sent=await _find_sent(page),
    )


def _is_done(page: PageRequest, channel: Channel, step: GuideStep, info: ChannelConnection | None) -> bool:
    """This server has its address; or what the step yields is stored or was entered, and nothing is wrong with it."""
    if not step.fields:
        return page.is_secure
    if page.error and not page.error.details and any(page.form_value(field.name) for field in channel.fields):
        return False  # the channel refused the account, and does not say for which field
    stored = {*info.account, *info.secrets} if info is not None and info.status == "connected" else set()
    refused = {problem.field for problem in page.error.details or []} if page.error else set()
    return all((name in stored or page.form_value(name)) and name not in refused for name in step.fields)


@console.post("/{environment}/channels/{id}", roles=DEVELOPERS, shown_by=show_channel)
async def connect_channel(page: PageRequest) -> Response:
    """Only this response shows the hook's address and the generated values, if there are new ones."""
    channel, company, is_checked = _get_channel(page), await _get_company(page), not page.form_value("unchecked")
    async with page.context.database.connection() as db:
        draft = await connections.prepare(page.context, db, company, channel.source, _list_values(page, channel))
    if is_checked:
        await connections.check(page.context, company, draft)
    async with page.context.database.transaction() as tx:
        made = await connections.connect(
            page.context, tx, company, draft, is_new_hook=bool(page.form_value("new_hook"))
        )
        if is_checked:
            await connections.record_verified(tx, company, made.connection.id, None)
        await page.record(tx, "channel.connected", channel.label)
    if not made.generated and made.hook_url is None:
        page.say("Saved")
        return go_to(page.path(f"/channels/{channel.source}"))
    labels = {field.name: field.label for field in channel.fields}
    return page.show("channel_made.html", channel=channel, made=made, labels=labels)


@console.post("/{environment}/channels/{id}/test", roles=DEVELOPERS, shown_by=show_channel)
async def test_channel(page: PageRequest) -> Response:
    channel, company = _get_channel(page), await _get_company(page)
    info = await connections.test(page.context, company, channel.source)
    page.say("The connection works" if info.health == "ok" else "The connection does not work")
    if info.health == "ok":
        with suppress(NotSent, Unclear, BadAccount):
            await channel_status.refresh_source(page.context, company, channel.source)
    return go_to(page.path(f"/channels/{channel.source}"))


@console.post("/{environment}/channels/{id}/message", roles=DEVELOPERS, shown_by=show_channel)
async def send_test_message(page: PageRequest) -> Response:
    """The last step of a channel's guide; the page that follows says what became of it."""
    source = _get_channel(page).source
    body = {"to": page.form_value("to"), "sources": source, "message": page.form_value("message").replace("\r\n", "\n")}
    sent = (await page.call("POST", "/messages/send", body=body, base=Base.MESSAGING))["data"]
    return go_to(page.path(f"/channels/{source}?message={sent['messageId2']}#test-message"))


async def _find_sent(page: PageRequest) -> dict[str, str] | None:
    """The outcome of the test message in the address, in words."""
    id = page.request.query_params.get("message", "")
    if not id or page.form:
        return None
    message = (await page.call("GET", f"/messages/{id}", base=Base.MESSAGING))["data"]
    reason = message["error"]["message"] if message["error"] else ""
    return {"status": message["status"], "to": message["clientNumber"], "reason": reason}


@console.post("/{environment}/channels/{id}/disconnect", roles=DEVELOPERS, shown_by=show_channel, says="Disconnected")
async def disconnect_channel(page: PageRequest) -> Response:
    channel, company = _get_channel(page), await _get_company(page)
    async with page.context.database.transaction() as tx:
        await connections.disconnect(tx, company, channel.source)
        await page.record(tx, "channel.disconnected", channel.label)
    return go_to(page.path(f"/channels/{channel.source}"))


@console.post("/{environment}/channels/{id}/retry", roles=DEVELOPERS, shown_by=show_channel)
async def retry_callbacks(page: PageRequest) -> Response:
    """Processes callbacks again that were set aside: one, or all of the channel."""
    channel, company = _get_channel(page), await _get_company(page)
    info = (await _list_present(page, company)).get(channel.source)
    number = page.form_value("callback")
    if info is None or not (number == "all" or (number.isascii() and number.isdigit() and len(number) < MAX_DIGITS)):
        raise NotFound
    async with page.context.database.transaction() as tx:
        await set_aside.retry(tx, company, info.id, None if number == "all" else int(number))
        await page.record(tx, "callbacks.retried", channel.label)
    return go_to(page.path(f"/channels/{channel.source}"))


async def _get_company(page: PageRequest) -> Company:
    async with page.context.database.connection() as db:
        return await access.get_company(db, page.company_id)


def _show_event(event: ChannelEvent) -> dict[str, object]:
    shown = {name: getattr(event, name) for name in ("kind", "name", "client_number", "created_at")}
    return {**shown, "data": msgspec.json.decode(event.data)}


def _get_channel(page: PageRequest) -> Channel:
    channel = connections.find_channel(page.request.path_params["id"])
    if channel is None:
        raise NotFound
    return channel


async def _list_present(page: PageRequest, company: Company) -> dict[str, ChannelConnection]:
    """The connected account of each channel, or the last one."""
    async with page.context.database.connection() as db:
        infos = await get_environment(company).accounts.list_infos(page.context, db, company)
    connected_last = sorted(infos, key=lambda info: info.status == "connected")
    return {info.source: info for info in connected_last}


def _list_values(page: PageRequest, channel: Channel) -> dict[str, str]:
    """An empty secret keeps its value; any other empty field is cleared."""
    values = {field.name: page.form_value(field.name) for field in channel.fields}
    return {field.name: values[field.name] for field in channel.fields if values[field.name] or not field.is_secret}


def _list_plain(page: PageRequest, channel: Channel, info: ChannelConnection | None) -> dict[str, str]:
    """Values to prefill: never a secret, not even one that was just typed."""
    stored = info.account if info else {}
    plain = [field.name for field in channel.fields if not field.is_secret]
    return {name: page.form_value(name) if page.form else stored.get(name, "") for name in plain}
