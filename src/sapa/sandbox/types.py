"""Requests and responses of the sandbox controls."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from sapa.http.errors import ApiError
from sapa.http.responses import StoredJson, Timestamp
from sapa.http.schemas import DocumentedAs
from sapa.messaging.channels.account_reports import Quality
from sapa.messaging.channels.interface import MediaType, Source
from sapa.sandbox.inbound_contents import SimulatedContents
from sapa.values.enum_names import EnumName


class TestKeyRequired(ApiError):
    """This endpoint works only in a test environment. Use a key that begins with svc_test_."""

    status = 403
    code = "TEST_KEY_REQUIRED"
    fix = "Use a test key. In the live environment the carrier or the channel itself reports what happens."


class PressedButton(Struct, frozen=True, forbid_unknown_fields=True):
    """The button or row that the customer chooses."""

    id: Annotated[str, Meta(min_length=1, max_length=256, examples=["yes"])]
    title: Annotated[str, Meta(min_length=1, max_length=100, examples=["Ya"])]


class SandboxInboundIn(
    SimulatedContents,
    frozen=True,
    kw_only=True,
    rename={"from_": "from"},
    forbid_unknown_fields=True,
):
    """A simulated message: a text, a chosen button or row, a file, or one of the other contents."""

    source: Annotated[
        str,
        Meta(max_length=50),
        DocumentedAs(Source),
        Meta(examples=["MSGAPP_CLOUD"], description="The channel. Other spellings are accepted as in a send."),
    ]
    from_: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=254,
            examples=["+12015550100"],
            description="The sender's phone number, id or e-mail address on the channel.",
        ),
    ]
    text: Annotated[str, Meta(max_length=4096, examples=["Apakah masih ada?"])] | None = None
    button: Annotated[PressedButton | None, Meta(examples=[None])] = None
    media: Annotated[MediaType | None, Meta(examples=[None], description="Attaches a small file of this type.")] = None
    quoted: Annotated[
        Annotated[str, Meta(max_length=500)] | None,
        Meta(examples=[None], description="The messageId of the quoted message."),
    ] = None
    name: Annotated[str, Meta(max_length=100, examples=["Ayu"])] | None = None
    subject: Annotated[
        Annotated[str, Meta(max_length=200)] | None, Meta(examples=[None], description="The subject of a mail.")
    ] = None
    echo: Annotated[
        bool, Meta(description="True: the company itself sent it by other means, such as its own phone (MSGAPP_COEX).")
    ] = False


class SandboxInbound(Struct, frozen=True, rename={"from_": "from", "message_id": "messageId"}):
    """The message that will arrive."""

    source: Source
    from_: Annotated[str, Meta(examples=["+12015550100"])]
    message_id: Annotated[str, Meta(examples=["wamid.HBgNNjI4MTIz"], description="The channel's own id.")]
    callback: Annotated[
        str, Meta(examples=['{"object":"whatsapp_business_account"}'], description="The body, as the channel sends it.")
    ]


SimulatedWarning = Annotated[
    Literal[
        "ACCOUNT_VIOLATION", "ACCOUNT_RESTRICTION", "DISABLED_UPDATE", "REINSTATE",
        "INCREASED_CAPABILITIES_ELIGIBILITY_DEFERRED",
    ],
    EnumName("SimulatedWarning"),
]  # fmt: skip


_LIMIT = "How many people may get messages outside of a reply window in 24 hours: 250, 2000, 10000 or 100000."


class SandboxStatusIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How a channel rates and limits the account from now on. What is absent stays."""

    source: Annotated[Source, Meta(examples=["MSGAPP_CLOUD"])]
    quality: Quality | None = None
    messaging_limit: Annotated[int, Meta(examples=[2000], description=_LIMIT)] | None = None
    is_unlimited: Annotated[bool, Meta(examples=[False], description="Instead of a limit.")] = False
    throughput: Annotated[Literal["STANDARD", "HIGH"], EnumName("SimulatedThroughput")] | None = None
    warning: Annotated[SimulatedWarning | None, Meta(description="`REINSTATE` ends DISABLED_UPDATE.")] = None


class SandboxStatus(Struct, frozen=True):
    """The callbacks that will arrive."""

    source: Source
    callbacks: Annotated[
        list[str],
        Meta(
            examples=[['{"object":"whatsapp_business_account"}']], description="The bodies, as the channel sends them."
        ),
    ]


class ClockIn(Struct, frozen=True, forbid_unknown_fields=True):
    """How far the clock is moved forward."""

    seconds: Annotated[int, Meta(ge=1, le=315_360_000, examples=[90_000])]


class Clock(Struct, frozen=True, rename="camel"):
    """A test environment's clock."""

    now: Timestamp
    ahead_seconds: Annotated[float, Meta(examples=[90000], description="How far it is ahead of real time.")]


class OutboxEntry(Struct, frozen=True, rename="camel"):
    """A request that the real channel would get, and the simulator's response."""

    id: Annotated[int, Meta(examples=[1])]
    source: Source
    method: Annotated[str, Meta(examples=["POST"])]
    path: Annotated[str, Meta(examples=["/sandbox/graph/v25.0/5501/messages"])]
    headers: Annotated[Raw, StoredJson(dict[str, Any])]
    body: Annotated[str, Meta(examples=['{"messaging_product":"whatsapp"}'], description="Exactly as it was sent.")]
    status: Annotated[int, Meta(examples=[200])]
    answer: Annotated[str, Meta(examples=['{"messages":[]}'])]
    asked_at: Timestamp


class PlannedCallback(Struct, frozen=True):
    """A callback to post later; the fields are columns."""

    headers: Mapping[str, str]
    body: bytes
    after_seconds: float
    is_own: bool = True
    """False for what only concerns the subscriber."""
