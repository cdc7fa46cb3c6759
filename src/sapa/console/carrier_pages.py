"""Settings: carriers. Their credentials go in and are never shown again."""

from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.routes import (
    DEVELOPERS,
    PageRequest,
    console,
    go_to,
)
from sapa.db.pool import Tx
from sapa.http.errors import Invalid, NotFound
from sapa.shipping.carriers.registry import list_adapters, list_providers
from sapa.shipping.connections import actions as connections
from sapa.shipping.connections.types import CarrierConnection
from sapa.shipping.providers import PROVIDERS
from sapa.values.company import Company


@console.get("/{environment}/carriers", roles=DEVELOPERS)
async def list_carriers(visit: PageRequest) -> Response:
    known = await _list_known(visit)
    shown = [(provider, PROVIDERS[provider].label, known.get(provider)) for provider in list_providers()]
    return visit.show("carriers.html", carriers=shown)


@console.get("/{environment}/carriers/{id}", roles=DEVELOPERS)
async def show_carrier(visit: PageRequest) -> Response:
    provider = _get_provider(visit)
    info = (await _list_known(visit)).get(provider)
    known = info.public_fields if info else {}
    return visit.show(
        "carrier.html",
        provider=provider,
        label=PROVIDERS[provider].label,
        info=info,
        labels={field.name: field.label for adapter in list_adapters(provider) for field in adapter.fields},
        adapters=list_adapters(provider),
        chosen=visit.given("adapter") or (info.adapter if info else ""),
        given={field.name: visit.given(field.name) if visit.form else known.get(field.name, "")
               for adapter in list_adapters(provider) for field in adapter.fields if not field.is_secret},
    )  # fmt: skip


@console.post("/{environment}/carriers/{id}", roles=DEVELOPERS, shown_by=show_carrier)
async def connect_carrier(visit: PageRequest) -> Response:
    """The callbacks' address is in this one answer."""
    provider, company = _get_provider(visit), await _get_company(visit)
    if company.is_test:
        raise Invalid("A test environment's carriers are played by simulators, and are always there.")
    adapter = connections.get_adapter(provider, visit.given("adapter") or None)
    given = {field.name: visit.given(field.name) for field in adapter.fields}

    async def note(tx: Tx) -> None:
        await visit.record(tx, "carrier.connected", f"{PROVIDERS[provider].label}: {adapter.label}")

    is_checked = not visit.given("unchecked")
    made = await connections.connect(visit.context, company, provider, adapter.name, given, is_checked, note)
    return visit.show("carrier_made.html", provider=provider, label=PROVIDERS[provider].label, made=made)


@console.post("/{environment}/carriers/{id}/test", roles=DEVELOPERS, shown_by=show_carrier)
async def test_carrier(visit: PageRequest) -> Response:
    provider = _get_provider(visit)
    await connections.check(visit.context, await _get_company(visit), provider)
    return go_to(visit.path(f"/carriers/{provider}"))


@console.post("/{environment}/carriers/{id}/disconnect", roles=DEVELOPERS, shown_by=show_carrier)
async def disconnect_carrier(visit: PageRequest) -> Response:
    provider, company = _get_provider(visit), await _get_company(visit)
    async with visit.context.database.transaction() as tx:
        await connections.disconnect(tx, company, provider)
        await visit.record(tx, "carrier.disconnected", PROVIDERS[provider].label)
    return go_to(visit.path(f"/carriers/{provider}"))


async def _get_company(visit: PageRequest) -> Company:
    async with visit.context.database.connection() as db:
        return await access.get_company(db, visit.company_id)


async def _list_known(visit: PageRequest) -> dict[str, CarrierConnection]:
    company = await _get_company(visit)
    async with visit.context.database.connection() as db:
        return {info.provider: info for info in await connections.list_connections(db, company)}


def _get_provider(visit: PageRequest) -> str:
    provider: str = visit.request.path_params["id"]
    if provider not in list_providers():
        raise NotFound
    return provider
