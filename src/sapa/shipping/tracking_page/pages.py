"""Serves the public tracking pages: HTML without scripts, for anybody who has the address."""

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.context import AppContext
from sapa.shipping.tracking_page import actions
from sapa.shipping.tracking_page.types import PageLanguage
from sapa.shipping.tracking_page.view import DEFAULT_COLOR, choose_ink
from sapa.shipping.tracking_page.words import LANGUAGE_NAMES, TEXTS
from sapa.shipping.types import TRACKING_PATH

_FOLDER = Path(__file__).parent / "templates"
_templates = Environment(
    loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_is_token = re.compile(r"[A-Za-z0-9_-]{16,64}", re.ASCII).fullmatch
HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow",
}


def build_pages(context: AppContext) -> list[Route]:
    async def show(request: Request) -> Response:
        wanted, token, found = choose_language(request), request.path_params["token"], None
        if _is_token(token):
            async with context.database.connection() as db:
                found = await actions.find_view(db, TRACKING_PATH + token, wanted)
        if found is None:
            return render("missing.html", 404, wanted or "id", DEFAULT_COLOR)
        view, language = found
        return render("tracking.html", 200, language, view.color, view=view)

    return [Route(TRACKING_PATH + "{token}", show, methods=["GET"])]


def choose_language(request: Request) -> PageLanguage | None:
    """The link's choice, else the first of the browser's languages that the page has."""
    header = request.headers.get("accept-language", "")
    accepted = [part.partition(";")[0].strip()[:2].lower() for part in header.split(",")]
    wanted = [request.query_params.get("lang", ""), *accepted]
    return cast(PageLanguage | None, next((language for language in wanted if language in LANGUAGE_NAMES), None))


def render(template: str, status: int, language: PageLanguage, color: str, **content: object) -> Response:
    """The style is part of the page, and its hash is all that the policy permits."""
    style = _templates.get_template("tracking.css").render(color=color, ink=choose_ink(color))
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
    page = _templates.get_template(template).render(
        **content, style=style, language=language, languages=LANGUAGE_NAMES, words=TEXTS[language]
    )
    return Response(page, status, HEADERS | {"content-security-policy": policy}, "text/html")
