"""Names for the sets of words that the API reads and writes."""

from typing import Any, get_args


class EnumName(str):
    """Marks a Literal with its name in the OpenAPI documents.

    `Status = Annotated[Literal["active", "archived"], EnumName("OrderStatus")]`
    """

    __slots__ = ()


def words_of(kind: Any) -> tuple[Any, ...]:
    """The words of a Literal that has a name."""
    return get_args(get_args(kind)[0])
