"""Small public pages behind a link with a token: one template with its style, and a form without a script."""

import asyncio
import re
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response

from sapa.http.errors import PayloadTooLarge, RequestTimeout

BODY_SECONDS = 15.0
HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow",
}

_parse_token = re.compile(r"([1-9][0-9]{0,17})-([A-Za-z0-9_-]{16,64})", re.ASCII).fullmatch


class LinkPage:
    """`page.html` and `page.css` of a folder, in the languages of `texts`."""

    def __init__(self, folder: Path, texts: Mapping[str, Mapping[str, str]], language_names: Mapping[str, str]) -> None:
        templates = Environment(
            loader=FileSystemLoader(folder),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._template = templates.get_template("page.html")
        self._style = templates.get_template("page.css").render()
        self._texts = texts
        self._language_names = language_names

    def render(self, request: Request, view: object | None, company_language: str) -> Response:
        """A link without a view is not found. The style's hash is all that the policy permits."""
        language = self._choose_language(request, company_language)
        page = self._template.render(
            view=view,
            style=self._style,
            language=language,
            languages=self._language_names,
            words=self._texts[language],
        )
        digest = b64encode(sha256(self._style.encode()).digest()).decode()
        policy = (
            f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; "
            "frame-ancestors 'none'"
        )
        return Response(page, 404 if view is None else 200, HEADERS | {"content-security-policy": policy}, "text/html")

    def _choose_language(self, request: Request, company_language: str) -> str:
        """The link's choice, else the first of the browser's languages that the page has, else the company's."""
        header = request.headers.get("accept-language", "")
        accepted = [part.partition(";")[0].strip()[:2].lower() for part in header.split(",")]
        wanted = [request.query_params.get("lang", ""), *accepted, company_language]
        return next((language for language in wanted if language in self._language_names), "id")


def parse_link(request: Request) -> tuple[int, str] | None:
    """The company and the secret of an address that ends in `{company}-{secret}`."""
    parsed = _parse_token(request.path_params["token"])
    return (int(parsed[1]), parsed[2]) if parsed else None


async def read_form(request: Request, max_bytes: int) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > max_bytes:
                    raise PayloadTooLarge(f"The request's body is larger than {max_bytes // 1024} KiB.")
    except TimeoutError:
        raise RequestTimeout(f"The request's body did not arrive within {BODY_SECONDS:.0f} seconds.") from None
    return bytes(body)
