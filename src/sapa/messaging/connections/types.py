"""Connections with channels as people see them, and their errors."""

from typing import Annotated

from msgspec import Struct

from sapa.http.errors import Conflict
from sapa.http.responses import Timestamp
from sapa.values.ids import IdKind

CONNECTION_ID = IdKind("chan_")
ConnectionId = Annotated[str, CONNECTION_ID]


class ChannelConnection(Struct, frozen=True, rename="camel"):
    """A company's account with a channel, without the values of its secrets."""

    id: ConnectionId
    company_id: int
    source: str
    channel: str
    account: dict[str, str]
    secrets: list[str]
    status: str
    health: str
    """ok, failing, unverified or disconnected."""
    last_error: str | None = None
    last_error_at: Timestamp | None = None
    verified_at: Timestamp | None = None
    connected_at: Timestamp | None = None
    disconnected_at: Timestamp | None = None


class NewChannelConnection(Struct, frozen=True, rename="camel"):
    """A new connection. Its hook and generated values are shown only here."""

    connection: ChannelConnection
    hook_url: str | None
    """The callback address; None if it has not changed."""
    generated: dict[str, str]
    snippet: str | None = None
    """The HTML that shows the web chat on a site."""


class ChannelNotConnected(Conflict):
    """The company has no such channel connected. `sapa channel list` shows its channels, `connect` adds one."""

    code = "CHANNEL_NOT_CONNECTED"


class OtherAccount(Conflict):
    """The company has another account of this channel connected. Disconnect that one first."""

    code = "CHANNEL_CONNECTED"
    constraint = "channel_connections_source_key"


class SandboxChannel(Conflict):
    """A test environment has every channel connected to its simulator. Connect accounts in the live environment."""

    code = "SANDBOX_CHANNEL"


class AccountRefused(Conflict):
    """The channel does not accept the account."""

    code = "CHANNEL_REFUSED"
