"""Requests and responses of the sandbox controls."""

from typing import Annotated, Any

from msgspec import Meta, Raw, Struct

from sapa.http.errors import ApiError
from sapa.http.responses import StoredJson, Timestamp
from sapa.messaging.channels.interface import MediaType, Source


class TestKeyRequired(ApiError):
    """Only a test environment can be played with; call with a key that begins with svc_test_."""

    status = 403
    code = "TEST_KEY_REQUIRED"


class PressedButton(Struct, frozen=True, forbid_unknown_fields=True):
    """A button or row that is chosen."""

    id: Annotated[str, Meta(min_length=1, max_length=256, examples=["yes"])]
    title: Annotated[str, Meta(min_length=1, max_length=100, examples=["Ya"])]


class SandboxInboundIn(Struct, frozen=True, kw_only=True, rename={"from_": "from"}, forbid_unknown_fields=True):
    """Somebody writes to the company: a text, a button or row that they choose, or a file."""

    source: Annotated[
        str, Meta(max_length=50, examples=["MSGAPP_CLOUD"], description="The channel, written as in a send.")
    ]
    from_: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=254,
            examples=["+12015550100"],
            description="Whom the channel knows the person as: a phone number, an id, an e-mail address.",
        ),
    ]
    text: Annotated[str, Meta(max_length=4096, examples=["Apakah masih ada?"])] | None = None
    button: Annotated[PressedButton | None, Meta(examples=[None])] = None
    media: Annotated[MediaType | None, Meta(examples=[None], description="A small file of this kind comes along.")] = (
        None
    )
    quoted: Annotated[
        Annotated[str, Meta(max_length=500)] | None,
        Meta(examples=[None], description="The messageId of the message that is answered."),
    ] = None
    name: Annotated[str, Meta(max_length=100, examples=["Ayu"])] | None = None
    subject: Annotated[Annotated[str, Meta(max_length=200)] | None, Meta(examples=[None], description="Of a mail.")] = (
        None
    )
    echo: Annotated[
        bool, Meta(description="The company itself wrote it elsewhere, such as on its own telephone (MSGAPP_COEX).")
    ] = False


class SandboxInbound(Struct, frozen=True, rename={"from_": "from", "message_id": "messageId"}):
    """What will arrive in a moment."""

    source: Source
    from_: Annotated[str, Meta(examples=["+12015550100"])]
    message_id: Annotated[str, Meta(examples=["wamid.HBgNNjI4MTIz"], description="The channel's own id.")]
    callback: Annotated[
        str, Meta(examples=['{"object":"whatsapp_business_account"}'], description="The body, as the channel sends it.")
    ]


class ClockIn(Struct, frozen=True, forbid_unknown_fields=True):
    """How far the clock is moved forward."""

    seconds: Annotated[int, Meta(ge=1, le=315_360_000, examples=[90_000])]


class Clock(Struct, frozen=True, rename="camel"):
    """A test environment's clock."""

    now: Timestamp
    ahead_seconds: Annotated[float, Meta(examples=[90000], description="How far it is ahead of the real time.")]


class OutboxEntry(Struct, frozen=True, rename="camel"):
    """A request that the real channel would have got, and what its simulator answered."""

    id: Annotated[int, Meta(examples=[1])]
    source: Source
    method: Annotated[str, Meta(examples=["POST"])]
    path: Annotated[str, Meta(examples=["/sandbox/graph/v25.0/5501/messages"])]
    headers: Annotated[Raw, StoredJson(dict[str, Any])]
    body: Annotated[str, Meta(examples=['{"messaging_product":"whatsapp"}'], description="Exactly as it was sent.")]
    status: Annotated[int, Meta(examples=[200])]
    answer: Annotated[str, Meta(examples=['{"messages":[]}'])]
    asked_at: Timestamp
