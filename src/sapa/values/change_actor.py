"""Who changes something."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.values.enum_names import EnumName


class ChangeActor(Struct, frozen=True, rename="camel"):
    """Who made a change: an API key, a user of the console, an import, or the product itself."""

    type: Annotated[Literal["api_key", "user", "import", "system"], EnumName("ChangeActorType")]
    id: Annotated[str | None, Meta(examples=["key_01jc9y3q5me8w92v7x4t6r0n1k"])] = None
    name: Annotated[str | None, Meta(examples=[None], description="Of a user: the e-mail address.")] = None


SYSTEM = ChangeActor("system")
