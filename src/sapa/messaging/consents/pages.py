"""The page behind the unsubscribe link of a mail. Only a POST changes anything: scanners of mail open every link."""

import re
from pathlib import Path

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.http.link_pages import LinkPage, parse_link, read_form
from sapa.messaging.consents import actions
from sapa.messaging.consents.page_words import LANGUAGE_NAMES, TEXTS
from sapa.messaging.consents.types import ConsentSource, ConsentStatus, UnsubscribeLink
from sapa.values.company import Company

MAX_BYTES = 4096
ONE_CLICK = b"List-Unsubscribe"
SUBSCRIBE = b"choice=subscribe"
PAGE = LinkPage(Path(__file__).parent / "templates", TEXTS, LANGUAGE_NAMES)

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
                return PAGE.render(request, None, "")
            company, link = found
            return PAGE.render(request, await _load_view(db, company, link), company.language)

    async def choose(request: Request) -> Response:
        """Mail programs post without a cookie and expect no redirect and no question (RFC 8058)."""
        body = await read_form(request, MAX_BYTES)
        async with context.database.connection() as db:
            found = await _find_link(db, request)
        if found is None:
            return PAGE.render(request, None, "")
        company, link = found
        status: ConsentStatus = "subscribe" if SUBSCRIBE in body else "unsubscribe"
        source: ConsentSource = "one_click" if ONE_CLICK in body else "link"
        message_id = request.query_params.get("message", "")
        reference = message_id if _is_message_id(message_id) else None
        await context.database.transact(lambda tx: actions.apply_link(tx, company, link, status, source, reference))
        async with context.database.connection() as db:
            view = await _load_view(db, company, link, is_changed=True)
        return PAGE.render(request, view, company.language)

    path = actions.PATH + "{token}"
    return [Route(path, show, methods=["GET"]), Route(path, choose, methods=["POST"])]


async def _find_link(db: Connection, request: Request) -> tuple[Company, UnsubscribeLink] | None:
    address = parse_link(request)
    link = await actions.find_link(db, *address) if address else None
    if address is None or link is None:
        return None
    return await access.get_company(db, address[0]), link


async def _load_view(db: Connection, company: Company, link: UnsubscribeLink, *, is_changed: bool = False) -> PageView:
    shop = (await access.get_environment(db, company.id)).name
    return PageView(shop, _mask(link.identity), await actions.is_stopped(db, company, link), is_changed)


def _mask(address: str) -> str:
    local, _, domain = address.rpartition("@")
    return f"{local[:1]}•••@{domain}"
