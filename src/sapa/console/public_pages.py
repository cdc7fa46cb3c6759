"""What the address of an installation itself shows: a start page, robots.txt and security.txt."""

from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sapa.console import translations
from sapa.console.rendering import protect, render
from sapa.context import AppContext

SECURITY_DAYS = 90
"""How long a copy of security.txt may be used."""
ROBOTS = "User-agent: *\nAllow: /$\nDisallow: /\n"


def build_public_pages(context: AppContext) -> list[Route]:
    server = context.settings.server
    is_secure = server.address.startswith("https://")

    async def show_start(request: Request) -> Response:
        values = {"contact": server.security_contact}
        return protect(render("start.html", 200, translations.choose(request), values), is_secure)

    async def show_robots(_: Request) -> Response:
        return protect(PlainTextResponse(ROBOTS), is_secure)

    async def show_security(_: Request) -> Response:
        text = build_security_text(server.address, server.security_contact, datetime.now(UTC))
        return protect(PlainTextResponse(text), is_secure)

    return [
        Route("/", show_start),
        Route("/robots.txt", show_robots),
        Route("/.well-known/security.txt", show_security),
    ]


def build_security_text(address: str, contact: str | None, now: datetime) -> str:
    """As RFC 9116 defines it. Without a contact that the operator has set, it names the start page, which says whom to
    ask."""
    until = (now + timedelta(days=SECURITY_DAYS)).replace(hour=0, minute=0, second=0, microsecond=0)
    lines = [
        f"Contact: {contact or f'{address}/#security'}",
        f"Expires: {until:%Y-%m-%dT%H:%M:%SZ}",
        "Preferred-Languages: en, id",
        f"Canonical: {address}/.well-known/security.txt",
    ]
    return "\n".join(lines) + "\n"
