"""A company's accounts with carriers: which adapter serves a provider, with which credentials.

In a test environment every provider is connected to its simulator, with nothing stored.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256

import msgspec
from msgspec import Struct

from sapa.access.actions import get_company
from sapa.context import AppContext
from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.http.executor import AuditRecorder
from sapa.http.response_cache import drop_responses
from sapa.shipping.carriers import circuit
from sapa.shipping.carriers.calls import scrub_text
from sapa.shipping.carriers.interface import (
    BadCredentials,
    Carrier,
    CarrierAccount,
    CarrierAway,
)
from sapa.shipping.carriers.registry import CARRIERS, list_adapters, list_providers
from sapa.shipping.connections import queries
from sapa.shipping.connections.types import (
    CONNECTION_ID,
    CachedCarrier,
    CarrierConnection,
    CarrierHealth,
    ConnectedCarrier,
    NewCarrierConnection,
    ProviderNotConnected,
    StoredCarrierConnection,
)
from sapa.shipping.environment import TEST, get_environment
from sapa.shipping.errors import CarrierUnavailable
from sapa.shipping.providers import LOCAL_PROVIDERS
from sapa.values.company import Company
from sapa.values.sealing import ResealedBatch, Vault

HOOKS = "/hooks/carriers/"
MAX_CACHED = 10_000

_cache: dict[tuple[int, str], CachedCarrier] = {}


class CarrierDraft(Struct, frozen=True):
    """A checked account before it is stored."""

    id: str
    provider: str
    carrier: Carrier
    credentials: Mapping[str, str]
    """Without those of a simulator."""
    public_fields: Mapping[str, str]
    verified_at: datetime | None


async def find_carrier(context: AppContext, db: Connection, company: Company, provider: str) -> ConnectedCarrier | None:
    """The carrier that serves a provider for the company; None without a working account."""
    stored = await queries.find(db, company.id, provider)
    if stored is not None:
        return await _connect_stored(context, company, stored) if stored.status == "connected" else None
    adapter = get_environment(company).find_adapter(provider)
    return None if adapter is None else await _connect_unstored(context, company, adapter)


async def get_carrier(context: AppContext, db: Connection, company: Company, provider: str) -> ConnectedCarrier:
    connected = await find_carrier(context, db, company, provider)
    if connected is None:
        page = f"{context.settings.server.address}/console/{company.environment}/carriers/{provider}"
        raise ProviderNotConnected(f"{provider} is not connected. Connect it in the console, at {page}.")
    return connected


async def find_adapter(db: Connection, company: Company, provider: str) -> str | None:
    """The adapter that serves a provider for the company, whether its account works or not."""
    stored = await queries.find(db, company.id, provider)
    if stored is not None:
        return stored.adapter
    return get_environment(company).find_adapter(provider)


async def find_by_token(context: AppContext, db: Connection, token: str) -> ConnectedCarrier | None:
    """The connection that a callback token belongs to."""
    simulated = TEST.installed.find_token_owner(context, token)
    if simulated is not None:
        company_id, adapter = simulated
        return await _connect_unstored(context, await get_company(db, company_id), adapter)
    owner = await queries.find_by_token(db, _hash(token))
    if owner is None:
        return None
    company = await get_company(db, owner.company_id)
    stored = await queries.find_by_id(db, company.id, owner.id)
    return await _connect_stored(context, company, stored) if stored else None


async def list_connected(context: AppContext, db: Connection, company: Company) -> dict[str, str]:
    """Provider → adapter; local providers need no connection and are not listed."""
    found = _list_unstored(company)
    for stored in await queries.list_all(db, company.id):
        found.pop(stored.provider, None)
        if stored.status == "connected":
            found[stored.provider] = stored.adapter
    return found


def find_cached_carrier(company: Company, provider: str) -> CachedCarrier | None:
    """The stored account that served the provider last time."""
    return _cache.get((company.id, provider))


async def open_cached(
    context: AppContext, company: Company, cached: CachedCarrier, has_error: bool
) -> ConnectedCarrier:
    """For an account that a statement has just found to be the provider's still."""
    carrier = CARRIERS[cached.adapter]
    account = await _open_account(context, company, cached.id, carrier, cached.credentials)
    return ConnectedCarrier(carrier, account, has_error)


async def record_health(db: Connection, company_id: int, connection_id: str, error: str | None) -> None:
    """Records the result of the last call; the next success clears the error."""
    await queries.record_health(db, company_id, connection_id, error)


async def connect(
    context: AppContext,
    company: Company,
    provider: str,
    adapter: str | None,
    entered: Mapping[str, str],
    verify: bool = True,
    audit: AuditRecorder | None = None,
) -> NewCarrierConnection:
    """Connects a carrier in place of the provider's former one. The audit entry is written in the same transaction."""
    draft = await prepare(context, company, provider, adapter, entered, verify)
    async with context.database.transaction() as tx:
        new = await store(context, tx, company, draft)
        if audit is not None:
            await audit(tx)
    return new


async def prepare(
    context: AppContext,
    company: Company,
    provider: str,
    adapter: str | None,
    entered: Mapping[str, str],
    verify: bool = True,
) -> CarrierDraft:
    """Checks an account, and asks the carrier to verify it. Makes an outbound call."""
    carrier = get_adapter(provider, adapter)
    supplied = get_environment(company).build_credentials(context, company.id, carrier)
    credentials = _check_credentials(carrier, supplied, entered)
    # A simulator's credentials change with the secret key, so they are not stored.
    own = {name: value for name, value in credentials.items() if value != supplied.get(name)}
    id = CONNECTION_ID.new()
    connection = await _open_account(context, company, id, carrier, credentials)
    if verify:
        await _verify(carrier, connection)
    return CarrierDraft(
        id, provider, carrier, own, _public(carrier, credentials), datetime.now(UTC) if verify else None
    )


async def store(context: AppContext, tx: Tx, company: Company, draft: CarrierDraft) -> NewCarrierConnection:
    """Stores a checked account in place of the provider's former one."""
    token = get_environment(company).build_token(context, company.id, draft.carrier.name)
    stored = await queries.replace(
        tx, company.id, draft.id, draft.provider, draft.carrier.name,
        context.vault.seal(msgspec.json.encode(draft.credentials), company.id, draft.id),
        msgspec.json.encode(draft.public_fields), _hash(token), draft.verified_at,
    )  # fmt: skip
    drop_responses(tx, company.id)
    left_behind = await queries.count_open(tx, company.id, draft.provider, draft.carrier.name)
    callback_url = f"{context.settings.server.address}{HOOKS}{token}"
    return NewCarrierConnection(_build_info(company, stored), callback_url, left_behind)


def get_adapter(provider: str, adapter: str | None) -> Carrier:
    """The carrier that a connection of this provider would use."""
    fitting = list_adapters(provider)
    if not fitting:
        choices = ", ".join(sorted(list_providers()))
        raise Invalid.field("provider", f"must be one of {choices}; {LOCAL_PROVIDERS} need no connection")
    for carrier in fitting:
        if adapter in {None, carrier.name}:
            return carrier
    raise Invalid.field("adapter", f"must be one of {', '.join(carrier.name for carrier in fitting)}")


async def list_connections(db: Connection, company: Company) -> list[CarrierConnection]:
    """Stored connections, and in a test environment the simulators of the other providers."""
    stored = [_build_info(company, stored) for stored in await queries.list_all(db, company.id)]
    taken = {info.provider for info in stored}
    simulated = [
        _build_simulated(provider, adapter)
        for provider, adapter in _list_unstored(company).items()
        if provider not in taken
    ]
    return sorted([*stored, *simulated], key=lambda info: info.provider)


async def check(context: AppContext, company: Company, provider: str) -> CarrierHealth:
    """Asks the carrier whether the account works, and records the result."""
    async with context.database.connection() as db:
        stored = await queries.find(db, company.id, provider)
        connected = (
            await _connect_stored(context, company, stored)
            if stored
            else await get_carrier(context, db, company, provider)
        )
    status, error = await _ask_health(connected, stored.status if stored else "connected")
    if stored is not None:
        async with context.database.transaction() as tx:
            await queries.record_test(tx, company.id, stored.id, status, error)
            drop_responses(tx, company.id)
    return CarrierHealth(provider, connected.carrier.name, error is None, error)


async def reseal(tx: Tx, vault: Vault, company_id: int, after: str, limit: int) -> ResealedBatch:
    """One batch of a rotation of the secret key."""
    batch = vault.reseal(await queries.lock_sealed(tx, company_id, after, limit), company_id)
    await queries.replace_sealed(tx, company_id, batch.sealed)
    return batch


async def disconnect(tx: Tx, company: Company, provider: str) -> None:
    """Deletes an account and its credentials; a test environment falls back to the simulator."""
    if not await queries.delete(tx, company.id, provider):
        if provider in _list_unstored(company):
            raise Invalid.field("provider", f"{provider} is simulated in a test environment and cannot be disconnected")
        raise ProviderNotConnected(f"{provider} is not connected.")
    drop_responses(tx, company.id)


def _list_unstored(company: Company) -> dict[str, str]:
    """Providers that are connected without a stored account, each with its adapter."""
    environment = get_environment(company)
    return {provider: adapter for provider in list_providers() if (adapter := environment.find_adapter(provider))}


async def _connect_stored(context: AppContext, company: Company, stored: StoredCarrierConnection) -> ConnectedCarrier:
    carrier = CARRIERS[stored.adapter]
    unsealed = context.vault.open(stored.sealed, company.id, stored.id)
    supplied = get_environment(company).build_credentials(context, company.id, carrier)
    credentials = supplied | msgspec.json.decode(unsealed, type=dict[str, str])
    account = await _open_account(context, company, stored.id, carrier, credentials)
    if len(_cache) >= MAX_CACHED:
        _cache.clear()
    _cache[company.id, stored.provider] = CachedCarrier(stored.adapter, stored.id, credentials)
    return ConnectedCarrier(carrier, account, stored.last_error is not None)


async def _connect_unstored(context: AppContext, company: Company, adapter: str) -> ConnectedCarrier:
    carrier = CARRIERS[adapter]
    credentials = get_environment(company).build_credentials(context, company.id, carrier)
    return ConnectedCarrier(carrier, await _open_account(context, company, _unstored_id(adapter), carrier, credentials))


async def _open_account(
    context: AppContext, company: Company, id: str, carrier: Carrier, credentials: Mapping[str, str]
) -> CarrierAccount:
    environment = get_environment(company)
    address = await environment.get_address(context, carrier)
    return CarrierAccount(company, id, carrier.name, address, credentials, context.client, environment.breaks_circuits)


async def _verify(carrier: Carrier, connection: CarrierAccount) -> None:
    try:
        await carrier.verify(connection)
    except BadCredentials as error:
        raise Invalid(scrub_text(connection.credentials, f"{error}: nothing was connected.")) from None
    except CarrierAway as error:
        advice = "Try again, or connect it unverified (--no-verify)."
        message = f"{carrier.label} cannot verify the account now: {error}. {advice}"
        raise CarrierUnavailable(scrub_text(connection.credentials, message)) from None


async def _ask_health(connected: ConnectedCarrier, status: str) -> tuple[str, str | None]:
    """The account's status and error; a carrier that is away does not change the status."""
    credentials = connected.connection.credentials
    circuit.reset(connected.connection)
    try:
        await connected.carrier.verify(connected.connection)
    except BadCredentials as error:
        return "invalid", scrub_text(credentials, str(error))
    except CarrierAway as error:
        return status, scrub_text(credentials, str(error))
    return "connected", None


def _check_credentials(carrier: Carrier, supplied: Mapping[str, str], entered: Mapping[str, str]) -> dict[str, str]:
    """Requires every required field and rejects unknown ones; a simulator's credentials are filled in."""
    names = {field.name for field in carrier.fields}
    unknown = sorted(set(entered) - names)
    if unknown:
        raise Invalid.field(unknown[0], f"is not a field of {carrier.label}; use {', '.join(sorted(names))}")
    credentials = {**supplied} | {name: value.strip() for name, value in entered.items() if value.strip()}
    for field in carrier.fields:
        if field.is_required and field.name not in credentials:
            raise Invalid.field(field.name, f"is required: the {field.label} of your account with {carrier.label}")
        if not credentials.get(field.name, "").isprintable():
            raise Invalid.field(field.name, "must contain printable characters only")
    return credentials


def _public(carrier: Carrier, credentials: Mapping[str, str]) -> dict[str, str]:
    return {
        field.name: credentials[field.name]
        for field in carrier.fields
        if not field.is_secret and field.name in credentials
    }


def _build_info(company: Company, stored: StoredCarrierConnection) -> CarrierConnection:
    return CarrierConnection(
        id=stored.id,
        provider=stored.provider,
        adapter=stored.adapter,
        label=CARRIERS[stored.adapter].label,
        status=stored.status,
        is_sandbox=company.is_test,
        public_fields=msgspec.json.decode(stored.public_fields, type=dict[str, str]),
        verified_at=stored.verified_at,
        last_error=stored.last_error,
        created_at=stored.created_at,
    )


def _build_simulated(provider: str, adapter: str) -> CarrierConnection:
    label = CARRIERS[adapter].label
    return CarrierConnection(_unstored_id(adapter), provider, adapter, label, "connected", True, {}, None, None, None)


def _unstored_id(adapter: str) -> str:
    return f"sandbox_{adapter}"


def _hash(token: str) -> bytes:
    return sha256(token.encode()).digest()
