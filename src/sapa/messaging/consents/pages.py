"""The page behind the unsubscribe link of a mail. Only a POST changes anything: scanners of mail open every link."""

import asyncio
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.http.errors import PayloadTooLarge, RequestTimeout
from sapa.messaging.consents import actions
from sapa.messaging.consents.page_words import LANGUAGE_NAMES, TEXTS
from sapa.messaging.consents.types import ConsentSource, ConsentStatus, UnsubscribeLink
from sapa.values.company import Company

MAX_BYTES = 4096
BODY_SECONDS = 15.0
ONE_CLICK = b"List-Unsubscribe"
SUBSCRIBE = b"choice=subscribe"
HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow",
}

_templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_STYLE = _templates.get_template("page.css").render()
_DIGEST = b64encode(sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

_parse_token = re.compile(r"([1-9][0-9]{0,17})-([A-Za-z0-9_-]{16,64})", re.ASCII).fullmatch
_is_message_id = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


class PageView(Struct, frozen=True):
    """What the page shows."""

    shop: str
    address: str
    """Not in full: mail is forwarded, with its link."""
    is_stopped: bool
    is_changed: bool = False


def build_pages(context: AppContext) -> list[Route]:
    async def show(request: Request) -> Response:
        async with context.database.connection() as db:
            found = await _find_link(db, request)
            if found is None:
                return _render(request, None, None)
            company, link = found
            return _render(request, company, await _load_view(db, company, link))

    async def choose(request: Request) -> Response:
        """Mail programs post without a cookie and expect no redirect and no question (RFC 8058)."""
        body = await _read(request)
        async with context.database.connection() as db:
            found = await _find_link(db, request)
        if found is None:
            return _render(request, None, None)
        company, link = found
        status: ConsentStatus = "subscribe" if SUBSCRIBE in body else "unsubscribe"
        source: ConsentSource = "one_click" if ONE_CLICK in body else "link"
        message_id = request.query_params.get("message", "")
        reference = message_id if _is_message_id(message_id) else None
        await context.database.transact(lambda tx: actions.apply_link(tx, company, link, status, source, reference))
        async with context.database.connection() as db:
            view = await _load_view(db, company, link, is_changed=True)
        return _render(request, company, view)

    path = actions.PATH + "{token}"
    return [Route(path, show, methods=["GET"]), Route(path, choose, methods=["POST"])]


async def _find_link(db: Connection, request: Request) -> tuple[Company, UnsubscribeLink] | None:
    parsed = _parse_token(request.path_params["token"])
    link = await actions.find_link(db, int(parsed[1]), parsed[2]) if parsed else None
    if parsed is None or link is None:
        return None
    return await access.get_company(db, int(parsed[1])), link


async def _load_view(db: Connection, company: Company, link: UnsubscribeLink, *, is_changed: bool = False) -> PageView:
    shop = (await access.get_environment(db, company.id)).name
    return PageView(shop, _mask(link.identity), await actions.is_stopped(db, company, link), is_changed)


def _mask(address: str) -> str:
    local, _, domain = address.rpartition("@")
    return f"{local[:1]}•••@{domain}"


def _render(request: Request, company: Company | None, view: PageView | None) -> Response:
    language = _choose_language(request, company)
    page = _templates.get_template("page.html").render(
        view=view, style=_STYLE, language=language, languages=LANGUAGE_NAMES, words=TEXTS[language]
    )
    headers = HEADERS | {"content-security-policy": POLICY}
    return Response(page, 404 if view is None else 200, headers, "text/html")


def _choose_language(request: Request, company: Company | None) -> str:
    """The link's choice, else the first of the browser's languages that the page has, else the company's."""
    header = request.headers.get("accept-language", "")
    accepted = [part.partition(";")[0].strip()[:2].lower() for part in header.split(",")]
    wanted = [request.query_params.get("lang", ""), *accepted, company.language if company else ""]
    return next((language for language in wanted if language in LANGUAGE_NAMES), "id")


async def _read(request: Request) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise PayloadTooLarge(f"The request's body is larger than {MAX_BYTES // 1024} KiB.")
    except TimeoutError:
        raise RequestTimeout(f"The request's body did not arrive within {BODY_SECONDS:.0f} seconds.") from None
    return bytes(body)
