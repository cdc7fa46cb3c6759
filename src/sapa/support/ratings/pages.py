"""The page behind the link of a rating question. Only a POST rates: programs that preview links open them, too."""

import asyncio
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qs

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.http.errors import PayloadTooLarge, RequestTimeout
from sapa.support.ratings import actions
from sapa.support.ratings.page_words import LANGUAGE_NAMES, TEXTS
from sapa.support.ratings.types import AlreadyRated, Rating, RatingIn
from sapa.values.company import Company

MAX_BYTES = 32_768
MAX_COMMENT_LENGTH = 2_000
BODY_SECONDS = 15.0
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


class RatingView(Struct, frozen=True):
    """What the page shows."""

    shop: str
    score: int | None
    is_incomplete: bool = False


def build_pages(context: AppContext) -> list[Route]:
    async def show(request: Request) -> Response:
        async with context.database.connection() as db:
            found = await _find_rating(db, request)
            if found is None:
                return _render(request, None, None)
            company, rating = found
            return _render(request, company, await _load_view(db, company, rating.score))

    async def rate(request: Request) -> Response:
        """A second answer changes nothing: the page shows the first."""
        answer = _parse_answer(await _read(request))
        async with context.database.connection() as db:
            found = await _find_rating(db, request)
        if found is None:
            return _render(request, None, None)
        company, rating = found
        score = rating.score
        if answer is not None and score is None:
            try:
                rated = await context.database.transact(lambda tx: actions.rate(tx, company, rating.id, answer))
            except AlreadyRated:
                async with context.database.connection() as db:
                    stored = await _find_rating(db, request)
                score = stored[1].score if stored else None
            else:
                score = rated.score
        async with context.database.connection() as db:
            view = await _load_view(db, company, score, is_incomplete=answer is None)
        return _render(request, company, view)

    path = actions.PATH + "{token}"
    return [Route(path, show, methods=["GET"]), Route(path, rate, methods=["POST"])]


async def _find_rating(db: Connection, request: Request) -> tuple[Company, Rating] | None:
    parsed = _parse_token(request.path_params["token"])
    rating = await actions.find_by_token(db, int(parsed[1]), parsed[2]) if parsed else None
    if parsed is None or rating is None:
        return None
    return await access.get_company(db, int(parsed[1])), rating


async def _load_view(db: Connection, company: Company, score: int | None, *, is_incomplete: bool = False) -> RatingView:
    return RatingView((await access.get_environment(db, company.id)).name, score, is_incomplete)


def _parse_answer(body: bytes) -> RatingIn | None:
    """None without a score from 1 to 5."""
    try:
        fields = parse_qs(body.decode(), max_num_fields=10)
    except ValueError:
        return None
    score = fields.get("score", [""])[-1]
    comment = fields.get("comment", [""])[-1].replace("\0", "")[:MAX_COMMENT_LENGTH]
    return RatingIn(score=int(score), comment=comment) if score in {"1", "2", "3", "4", "5"} else None


def _render(request: Request, company: Company | None, view: RatingView | None) -> Response:
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
