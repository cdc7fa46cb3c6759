"""Settings: carriers. Credentials are entered and never shown again."""

from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console, go_to
from sapa.db.pool import Tx
from sapa.http.errors import Invalid, NotFound
from sapa.shipping.carriers.registry import list_adapters, list_providers
from sapa.shipping.connections import actions as connections
from sapa.shipping.connections.types import CarrierConnection
from sapa.shipping.providers import PROVIDERS
from sapa.values.company import Company


@console.get("/{environment}/carriers", roles=DEVELOPERS)
async def list_carriers(page: PageRequest) -> Response:
    stored = await _list_stored(page)
    carriers = [(provider, PROVIDERS[provider].label, stored.get(provider)) for provider in list_providers()]
    return page.show("carriers.html", carriers=carriers)


@console.get("/{environment}/carriers/{id}", roles=DEVELOPERS)
async def show_carrier(page: PageRequest) -> Response:
    provider = _get_provider(page)
    info = (await _list_stored(page)).get(provider)
    stored = info.public_fields if info else {}
    return page.show(
        "carrier.html",
        provider=provider,
        label=PROVIDERS[provider].label,
        info=info,
        labels={field.name: field.label for adapter in list_adapters(provider) for field in adapter.fields},
        adapters=list_adapters(provider),
        chosen=page.form_value("adapter") or (info.adapter if info else ""),
        given={field.name: page.form_value(field.name) if page.form else stored.get(field.name, "")
               for adapter in list_adapters(provider) for field in adapter.fields if not field.is_secret},
    )  # fmt: skip


@console.post("/{environment}/carriers/{id}", roles=DEVELOPERS, shown_by=show_carrier)
async def connect_carrier(page: PageRequest) -> Response:
    """Only this response shows the callback address."""
    provider, company = _get_provider(page), await _get_company(page)
    if company.is_test:
        raise Invalid("A test environment's carriers are played by simulators, and are always there.")
    adapter = connections.get_adapter(provider, page.form_value("adapter") or None)
    values = {field.name: page.form_value(field.name) for field in adapter.fields}

    async def audit(tx: Tx) -> None:
        await page.record(tx, "carrier.connected", f"{PROVIDERS[provider].label}: {adapter.label}")

    is_checked = not page.form_value("unchecked")
    made = await connections.connect(page.context, company, provider, adapter.name, values, is_checked, audit)
    return page.show("carrier_made.html", provider=provider, label=PROVIDERS[provider].label, made=made)


@console.post("/{environment}/carriers/{id}/test", roles=DEVELOPERS, shown_by=show_carrier)
async def test_carrier(page: PageRequest) -> Response:
    provider = _get_provider(page)
    await connections.check(page.context, await _get_company(page), provider)
    return go_to(page.path(f"/carriers/{provider}"))


@console.post("/{environment}/carriers/{id}/disconnect", roles=DEVELOPERS, shown_by=show_carrier, says="Disconnected")
async def disconnect_carrier(page: PageRequest) -> Response:
    provider, company = _get_provider(page), await _get_company(page)
    async with page.context.database.transaction() as tx:
        await connections.disconnect(tx, company, provider)
        await page.record(tx, "carrier.disconnected", PROVIDERS[provider].label)
    return go_to(page.path(f"/carriers/{provider}"))


async def _get_company(page: PageRequest) -> Company:
    async with page.context.database.connection() as db:
        return await access.get_company(db, page.company_id)


async def _list_stored(page: PageRequest) -> dict[str, CarrierConnection]:
    company = await _get_company(page)
    async with page.context.database.connection() as db:
        return {info.provider: info for info in await connections.list_connections(db, company)}


def _get_provider(page: PageRequest) -> str:
    provider: str = page.request.path_params["id"]
    if provider not in list_providers():
        raise NotFound
    return provider
