"""Connections with channels as people see them, and their errors."""

from typing import Annotated

from msgspec import Meta, Struct

from sapa.http.errors import Conflict
from sapa.http.responses import Timestamp
from sapa.messaging.channels.interface import Source
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


class SimulatorAccount(Struct, frozen=True, rename="camel"):
    """An account with the simulator of a channel. A program uses it as it would use an account with the channel."""

    source: Source
    channel: Annotated[str, Meta(examples=["WhatsApp"])]
    address: Annotated[
        str | None,
        Meta(
            examples=["https://sapa.example.com/sandbox/graph/v25.0"],
            description="Instead of the channel's own. Null for mail while SAPA_SANDBOX_SMTP_LISTEN is not set.",
        ),
    ]
    account: Annotated[dict[str, str], Meta(examples=[{"phone_number_id": "5501", "waba_id": "771", "app_id": "9901"}])]
    credentials: Annotated[
        dict[str, str], Meta(examples=[{"access_token": "sbx_1_…"}], description="Valid for the simulator only.")
    ]


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


class LiveChannel(Conflict):
    """A live environment has no simulators. Use the id of the company's test environment."""

    code = "LIVE_CHANNEL"


class AccountRefused(Conflict):
    """The channel does not accept the account."""

    code = "CHANNEL_REFUSED"
