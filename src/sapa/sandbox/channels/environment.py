"""Messaging of test companies: simulators instead of channels, and no pacing."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from sapa.access.types import CompanyClock
from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.messaging.channels.interface import ChannelAccount, Identity, Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.connections.accounts import HOOKS, Accounts, ConnectedChannel, find_company
from sapa.messaging.connections.types import ChannelConnection, SimulatorAccount
from sapa.messaging.messages.actions import list_values
from sapa.messaging.sending.types import QUOTA_USED
from sapa.sandbox.channels import files, queries
from sapa.sandbox.channels.accounts import (
    build_app_id,
    build_connection_id,
    build_credentials,
    build_hook_token,
    build_public,
    find_hook,
    find_source,
)
from sapa.sandbox.channels.graph import SOURCES as GRAPH_SOURCES
from sapa.sandbox.channels.simulators import SIMULATORS
from sapa.values.company import Company

CLOSED = frozenset({"+12015550122", "sim_window_closed"})
"""Recipients whose window is always closed."""
QUOTA = "sim_quota_10"
"""A recipient whose quota is used up until they write."""

_matches_simulated = re.compile(r"sim_[a-z0-9_]{1,60}", re.ASCII).fullmatch


class SimulatedAccounts:
    """A test company has an account with every simulator; nothing is stored."""

    async def find_by_source(
        self, context: AppContext, db: Connection, company: Company, source: Source
    ) -> ConnectedChannel | None:
        return await self.find_unstored(context, company, source)

    async def find_unstored(self, context: AppContext, company: Company, source: Source) -> ConnectedChannel | None:
        if not company.is_test:
            return None
        channel = CHANNELS[source]
        connection = ChannelAccount(
            company=company,
            id=build_connection_id(company.id, source),
            source=source,
            address=await SIMULATORS[source].get_address(context),
            account=build_public(company.id, source, channel.fields),
            credentials=build_credentials(context, company.id, source, channel.fields),
            client=context.client,
            database=context.database,
            is_internal=True,
        )
        return ConnectedChannel(channel, connection)

    async def find_by_id(
        self, context: AppContext, db: Connection, company: Company, connection_id: str
    ) -> ConnectedChannel | None:
        source = find_source(company.id, connection_id)
        return await self.find_by_source(context, db, company, source) if source else None

    async def find_by_token(self, context: AppContext, db: Connection, token: str) -> ConnectedChannel | None:
        found = find_hook(context, token)
        company = await find_company(db, found.company_id) if found else None
        return await self.find_by_source(context, db, company, found.source) if found and company else None

    async def list_sources(self, db: Connection, company: Company) -> Sequence[Source]:
        return list(CHANNELS)

    async def list_infos(self, context: AppContext, db: Connection, company: Company) -> Sequence[ChannelConnection]:
        return [
            ChannelConnection(
                id=build_connection_id(company.id, source),
                company_id=company.id,
                source=source,
                channel=f"{channel.label} (simulator)",
                account=build_public(company.id, source, channel.fields),
                secrets=[field.name for field in channel.fields if field.is_secret],
                status="connected",
                health="ok",
            )
            for source, channel in CHANNELS.items()
        ]

    def find_hook(self, context: AppContext, company: Company, source: Source) -> str | None:
        return f"{context.settings.server.address}{HOOKS}{build_hook_token(context, company.id, source)}"

    def find_simulator(self, context: AppContext, company: Company, source: Source) -> SimulatorAccount | None:
        return build_simulator_account(context, company, source)


def build_simulator_account(context: AppContext, company: Company, source: Source) -> SimulatorAccount:
    channel, path, listen = CHANNELS[source], SIMULATORS[source].path, context.settings.sandbox.smtp_listen
    mail_address = f"{listen[0]}:{listen[1]}" if listen else None
    app = {"app_id": build_app_id(company.id, source)} if source in GRAPH_SOURCES else {}
    return SimulatorAccount(
        source=source,
        channel=channel.label,
        address=context.settings.server.address + path if path else mail_address,
        account={**build_public(company.id, source, channel.fields), **app},
        credentials=build_credentials(context, company.id, source, channel.fields),
    )


class SandboxMessaging:
    accounts: Accounts = SimulatedAccounts()
    is_paced = False

    def accepts_recipient_id(self, id: str) -> bool:
        return _matches_simulated(id) is not None

    async def find_closed_reason(
        self,
        db: Connection,
        connected: ConnectedChannel,
        to: Identity,
        clock: CompanyClock,
        last_inbound_at: datetime | None,
    ) -> str | None:
        """A window is open before the contact writes, until the clock is moved past it."""
        if to.value in CLOSED:
            return "The reply window is closed: the customer has not written recently enough. Send a template."
        if last_inbound_at is not None:
            return None
        connection, capabilities = connected.connection, connected.channel.capabilities
        if to.value == QUOTA and capabilities.max_in_window is not None:
            return QUOTA_USED.format(most=capabilities.max_in_window)
        window = capabilities.window or timedelta()
        if clock.now - clock.real < window:
            return None
        moved = await queries.find_moved(db, connection.company.id, connection.source, list_values(to))
        if moved is None or moved <= window:
            return None
        return "The clock was moved forward, and the customer has not written since then. Send a template."

    async def locate_file(self, context: AppContext, url: str) -> str:
        """The files are on this process's loopback address."""
        return await context.loopback.address() + files.PATH + url.removeprefix(files.ADDRESS)
