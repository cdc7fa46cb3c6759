"""An agent's notification settings: structs and errors."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from sapa.http.errors import Conflict
from sapa.values.enum_names import EnumName

AgentNotificationKind = Annotated[
    Literal["assigned", "unassigned", "mentioned", "order", "shipment"], EnumName("AgentNotificationKind")
]
Kinds = Annotated[
    list[AgentNotificationKind],
    Meta(
        max_length=5,
        description="A customer waits in the agent's own ticket (`assigned`) or in one that nobody has (`unassigned`); "
        "a note mentions the agent (`mentioned`); a paid order waits to be shipped; a parcel needs somebody.",
    ),
]


class AgentNotificationSettings(Struct, frozen=True, rename="camel"):
    """Which notifications an agent's user gets in this company, and how, for the live and the test environment."""

    kinds: Kinds
    sound: Annotated[bool, Meta(description="A sound, while the console is open.")]
    desktop: Annotated[bool, Meta(description="A notification of the desktop, while the console is open.")]
    mail: Annotated[bool, Meta(description="A mail after ten minutes away from the console, at most once an hour.")]


class AgentNotificationSettingsPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to the settings: absent fields keep their values."""

    kinds: Kinds | UnsetType = UNSET
    sound: bool | UnsetType = UNSET
    desktop: bool | UnsetType = UNSET
    mail: bool | UnsetType = UNSET


class AgentWithoutUser(Conflict):
    """The agent has no user of the console. Set its userId with PUT /agents/{id}."""

    code = "AGENT_WITHOUT_USER"
    fix = "Set the agent's userId, or choose an agent who has one."
