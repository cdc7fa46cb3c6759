"""Settings: channels. Their secrets go in and are never shown again."""

from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.routes import (
    DEVELOPERS,
    PageRequest,
    console,
    go_to,
)
from sapa.http.errors import NotFound
from sapa.messaging.connections import actions as connections
from sapa.messaging.connections.accounts import get_accounts
from sapa.messaging.connections.types import ChannelConnection
from sapa.messaging.messages.types import Channel
from sapa.values.company import Company


@console.get("/{environment}/channels", roles=DEVELOPERS)
async def list_channels(visit: PageRequest) -> Response:
    company = await _get_company(visit)
    known = await _list_present(visit, company)
    shown = [(channel, known.get(channel.source)) for channel in connections.list_channels()]
    return visit.show("channels.html", channels=shown)


@console.get("/{environment}/channels/{id}", roles=DEVELOPERS)
async def show_channel(visit: PageRequest) -> Response:
    channel, company = _get_channel(visit), await _get_company(visit)
    info = (await _list_present(visit, company)).get(channel.source)
    is_played = company.is_test
    return visit.show(
        "channel.html",
        channel=channel,
        info=info,
        labels={field.name: field.label for field in channel.fields},
        is_played=is_played,
        hook=get_accounts(company).find_hook(visit.kit, company, channel.source),
        given=_list_plain(visit, channel, info),
    )


@console.post("/{environment}/channels/{id}", roles=DEVELOPERS, shown_by=show_channel)
async def connect_channel(visit: PageRequest) -> Response:
    """The hook's address and what we made for the account are in this one answer."""
    channel, company, is_checked = _get_channel(visit), await _get_company(visit), not visit.given("unchecked")
    async with visit.kit.database.connection() as db:
        draft = await connections.prepare(visit.kit, db, company, channel.source, _list_given(visit, channel))
    if is_checked:
        await connections.check(visit.kit, company, draft)
    async with visit.kit.database.transaction() as tx:
        made = await connections.connect(visit.kit, tx, company, draft, is_new_hook=bool(visit.given("new_hook")))
        if is_checked:
            await connections.record_verified(tx, company, made.connection.id, None)
        await visit.record(tx, "channel.connected", channel.label)
    labels = {field.name: field.label for field in channel.fields}
    return visit.show("channel_made.html", channel=channel, made=made, labels=labels)


@console.post("/{environment}/channels/{id}/test", roles=DEVELOPERS, shown_by=show_channel)
async def test_channel(visit: PageRequest) -> Response:
    channel = _get_channel(visit)
    await connections.test(visit.kit, await _get_company(visit), channel.source)
    return go_to(visit.path(f"/channels/{channel.source}"))


@console.post("/{environment}/channels/{id}/disconnect", roles=DEVELOPERS, shown_by=show_channel)
async def disconnect_channel(visit: PageRequest) -> Response:
    channel, company = _get_channel(visit), await _get_company(visit)
    async with visit.kit.database.transaction() as tx:
        await connections.disconnect(tx, company, channel.source)
        await visit.record(tx, "channel.disconnected", channel.label)
    return go_to(visit.path(f"/channels/{channel.source}"))


async def _get_company(visit: PageRequest) -> Company:
    async with visit.kit.database.connection() as db:
        return await access.get_company(db, visit.company_id)


def _get_channel(visit: PageRequest) -> Channel:
    channel = connections.find_channel(visit.request.path_params["id"])
    if channel is None:
        raise NotFound
    return channel


async def _list_present(visit: PageRequest, company: Company) -> dict[str, ChannelConnection]:
    """Of each channel the account that is connected, or the last one that was."""
    async with visit.kit.database.connection() as db:
        infos = await get_accounts(company).list_infos(visit.kit, db, company)
    ordered = sorted(infos, key=lambda info: (info.status == "connected", info.connected_at or ""))
    return {info.source: info for info in ordered}


def _list_given(visit: PageRequest, channel: Channel) -> dict[str, str]:
    """A secret that is left empty stays as it is; anything else that is left empty is taken away."""
    given = {field.name: visit.given(field.name) for field in channel.fields}
    return {field.name: given[field.name] for field in channel.fields if given[field.name] or not field.is_secret}


def _list_plain(visit: PageRequest, channel: Channel, info: ChannelConnection | None) -> dict[str, str]:
    """What may stand in the form: never a secret, not even one that was just typed."""
    known = info.account if info else {}
    plain = [field.name for field in channel.fields if not field.is_secret]
    return {name: visit.given(name) if visit.form else known.get(name, "") for name in plain}
