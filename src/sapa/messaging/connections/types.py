"""Connections with channels as people see them, and their errors."""

from typing import Annotated

from msgspec import Meta, Struct

from sapa.http.errors import Conflict
from sapa.http.responses import SHOWN_ONCE, Timestamp
from sapa.messaging.channels.interface import Source
from sapa.values.ids import IdKind
from sapa.values.provider_accounts import AccountFieldEntry

CONNECTION_ID = IdKind("chan_")
ConnectionId = Annotated[str, CONNECTION_ID]


class ChannelConnection(Struct, frozen=True, rename="camel"):
    """A company's account with a channel, without the values of its secrets."""

    id: ConnectionId
    company_id: int
    source: Source
    channel: Annotated[str, Meta(examples=["E-mail"])]
    account: Annotated[
        dict[str, str], Meta(examples=[{"address": "halo@toko.example"}], description="The fields that are not secret.")
    ]
    secrets: Annotated[
        list[str], Meta(examples=[["smtp_password"]], description="The names of the secrets that are set.")
    ]
    status: Annotated[str, Meta(examples=["connected"], description="connected or disconnected.")]
    health: Annotated[str, Meta(examples=["ok"], description="ok, failing, unverified or disconnected.")]
    last_error: str | None = None
    last_error_at: Annotated[Timestamp | None, Meta(examples=[None])] = None
    verified_at: Timestamp | None = None
    connected_at: Timestamp | None = None
    disconnected_at: Annotated[Timestamp | None, Meta(examples=[None])] = None


class ChannelEntry(Struct, frozen=True, rename="camel"):
    """A channel, the fields of an account with it, and the company's account."""

    source: Source
    channel: Annotated[str, Meta(examples=["E-mail"])]
    connected: Annotated[bool, Meta(examples=[True])]
    fields: list[AccountFieldEntry]
    connection: Annotated[
        ChannelConnection | None,
        Meta(description="The connected account, or else the last one; null if there is none."),
    ]


class ChannelConnectionIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An account to connect."""

    fields: Annotated[
        dict[str, str],
        Meta(
            description="The fields of the account by name; GET /channels lists them. Those that you leave out keep"
            " their values, and an empty value clears an optional field."
        ),
    ] = {}
    verify: Annotated[bool, Meta(description="Whether the channel is asked to verify the account first.")] = True
    new_hook: Annotated[bool, Meta(description="Whether to create a new callback address.")] = False


class ConnectedChannelAccount(ChannelConnection, frozen=True, kw_only=True, rename="camel"):
    """A connected account with what is shown only once."""

    hook_url: Annotated[
        str | None,
        SHOWN_ONCE,
        Meta(
            examples=["https://sapa.example.com/hooks/channels/…"],
            description="The callback address to give to the channel. Null if it has not changed, and on a retry.",
        ),
    ]
    generated: Annotated[
        dict[str, str] | None,
        SHOWN_ONCE,
        Meta(examples=[{"verify_token": "…"}], description="Values that were generated. Null on a retry."),
    ]
    snippet: Annotated[str | None, SHOWN_ONCE, Meta(description="The HTML that shows the web chat on a site.")]


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
    """The company has not connected this channel. Connect an account first."""

    code = "CHANNEL_NOT_CONNECTED"
    fix = "Connect the channel in the console or with `sapa channel connect`, or send over another one."


class OtherAccount(Conflict):
    """The company has another account of this channel connected. Disconnect that one first."""

    code = "CHANNEL_CONNECTED"
    constraint = "channel_connections_source_key"
    fix = "Disconnect the account that is connected, then connect this one."


class SandboxChannel(Conflict):
    """A test environment has every channel connected to its simulator. Connect accounts in the live environment."""

    code = "SANDBOX_CHANNEL"
    fix = "Use the live company to connect accounts; a test environment needs none."


class LiveChannel(Conflict):
    """A live environment has no simulators. Use the id of the company's test environment."""

    code = "LIVE_CHANNEL"
    fix = "Use the company's test environment: its channels are simulators."


class AccountRefused(Conflict):
    """The channel does not accept the account."""

    code = "CHANNEL_REFUSED"
    fix = "Check the fields of the account with the channel. The message has the channel's own words."
