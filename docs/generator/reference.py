"""The reference of the API: as files, for a site without a server, and links to its operations."""

import re
from pathlib import Path

from sapa.domains import ROUTES
from sapa.http.endpoints import Base
from sapa.http.openapi import build_document
from sapa.http.reference import render_page
from sapa.http.reference_pages import file_name_of, list_reference_pages, slug_of

SERVER = "https://sapa.example.com"

_OPERATIONS = re.compile(r"^\*\*Operations:\*\* .*$", re.MULTILINE)
_NAME = re.compile(r"`(\w+)`")


def link_operations(catalogue: str) -> str:
    """The catalogue of errors with links from its operations to the reference."""
    addresses = {
        endpoint.handler.__name__: (
            f"reference/{routes.base.name.lower()}/{file_name_of(slug_of(routes.tag))}#{endpoint.handler.__name__}"
        )
        for routes in ROUTES
        for endpoint in routes.endpoints
    }

    def link(name: re.Match[str]) -> str:
        return f'<a href="{addresses[name[1]]}"><code>{name[1]}</code></a>'

    return _OPERATIONS.sub(lambda line: _NAME.sub(link, line[0]), catalogue)


def write_reference(site: Path) -> None:
    for base in Base:
        folder = site / "reference" / base.name.lower()
        folder.mkdir(parents=True)
        document = build_document(base, SERVER, ROUTES)
        (folder / "openapi.json").write_bytes(document.encode())
        for page in list_reference_pages(base, ROUTES):
            (folder / file_name_of(page)).write_text(render_page(document, page, are_files=True))
