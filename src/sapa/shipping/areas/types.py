"""Areas as responses, files and the dictionary represent them."""

from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from sapa.http.errors import Invalid
from sapa.http.responses import Timestamp
from sapa.shipping.carriers.interface import Level

LEVELS = {"provinces": 1, "cities": 2, "districts": 3, "sub-districts": 4}
"""The levels of the dictionary, from the widest to the narrowest."""


class CoverageArea(Struct, frozen=True, rename="camel"):
    """An area that a provider serves."""

    id: Annotated[int | str, Meta(description="The carrier's own id: pass it on unchanged.", examples=[317106])]
    name: Annotated[str, Meta(examples=["Menteng"])]
    parent_id: Annotated[int | str | None, Meta(examples=[3171])]
    zip: Annotated[str | None, Meta(description="If the carrier has it.", examples=["10310"])]


class AreaSearchResult(Struct, frozen=True, rename="camel"):
    """A sub-district that a search found, with the areas that it is in."""

    province_id: Annotated[int | str, Meta(examples=[32])]
    city_id: Annotated[int | str, Meta(examples=[3273])]
    district_id: Annotated[int | str, Meta(examples=[327307], description="Use it as kecamatanId.")]
    sub_district_id: Annotated[int | str, Meta(examples=[3273071001], description="Use it as kelurahanId.")]
    label: Annotated[str, Meta(examples=["Sukabungah, Sukajadi, Kota Bandung, Jawa Barat, 40162"])]
    zip: Annotated[str | None, Meta(description="If it is known.", examples=["40162"])]


class AreaRow(NamedTuple):
    """An area of a file. The code has no dots; a province's parent is 0."""

    code: int
    level: int
    parent: int
    name: str
    zip: str | None = None


class AreaWords(NamedTuple):
    """The words of a sub-district and of the areas that it is in, separated by blanks."""

    code: int
    own: str
    district: str
    city: str
    province: str


class AreaDataset(Struct, frozen=True, rename="camel"):
    """A file that was imported."""

    name: str
    sha512: str
    areas: int
    imported_at: Timestamp


class AreaImport(Struct, frozen=True, rename="camel"):
    """What an import did."""

    dataset: AreaDataset
    was_known: bool
    """The same file was the last one imported: nothing was done."""
    created: int = 0
    updated: int = 0
    retired: int = 0


class AreaRequest(Struct, frozen=True):
    """A list of areas: a level, and the parent in the level above."""

    provider: str
    level: Level
    parent: str | None


class UnusableAreas(Invalid):
    """The file does not contain the four lists of areas."""
