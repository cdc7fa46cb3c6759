"""Why a provider refused a request, in words that are the same for all providers."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.values.enum_names import EnumName

RefusalCategory = Annotated[
    Literal[
        "window", "recipient", "rate", "template", "auth", "billing", "policy", "quality", "consent", "media",
        "validation", "config", "temporary",
    ],
    EnumName("RefusalCategory"),
]  # fmt: skip


class ProviderRefusal(Struct, frozen=True, rename="camel"):
    """Why a provider refused a request, for programs."""

    category: RefusalCategory
    provider_code: Annotated[str, Meta(examples=["131026"], description="The provider's own code.")]
    retryable: Annotated[bool, Meta(examples=[False], description="Whether the same request may succeed later.")]
