"""The pages of a reference, and the links between them."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sapa.http.endpoints import Base, Routes

ADDRESS = "docs"
OVERVIEW, WEBHOOKS = "", "webhooks"


def slug_of(tag: str) -> str:
    """The last segment of the address of a tag's page."""
    return tag.lower().replace(" ", "-")


def file_name_of(page: str) -> str:
    """The name of a page that is stored as a file."""
    return f"{page or 'index'}.html"


def list_reference_pages(base: Base, domains: Sequence[Routes]) -> list[str]:
    """The pages of a base, each by the last segment of its address."""
    tags = dict.fromkeys(routes.tag for routes in domains if routes.base == base)
    return [OVERVIEW, *map(slug_of, tags), WEBHOOKS]


class Links(Struct, frozen=True):
    """Addresses within the reference, relative to one of its pages."""

    page: str
    homes: Mapping[str, str]
    """Schema → the page that shows it."""
    are_files: bool = False
    """Whether the pages are files of one folder, in place of addresses of a server."""

    def to(self, page: str, anchor: str = "") -> str:
        if page == self.page and anchor:
            return f"#{anchor}"
        address = file_name_of(page) if self.are_files else self._address_of(page)
        return f"{address}#{anchor}" if anchor else address

    def _address_of(self, page: str) -> str:
        return (page or f"../{ADDRESS}") if self.page else f"{ADDRESS}/{page}".rstrip("/")

    def catalogue(self) -> str:
        """The catalogue of errors in the documentation, seen from the overview."""
        return "../../errors.html" if self.are_files else "../../docs/errors.html"

    def schema(self, name: str) -> str:
        return self.to(self.homes[name], f"schema-{name}")
