"""The page behind the link of a rating question. Only a POST rates: programs that preview links open them, too."""

from pathlib import Path
from urllib.parse import parse_qs

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.http.link_pages import LinkPage, parse_link, read_form
from sapa.support.ratings import actions
from sapa.support.ratings.page_words import LANGUAGE_NAMES, TEXTS
from sapa.support.ratings.types import AlreadyRated, Rating, RatingIn
from sapa.values.company import Company

MAX_BYTES = 32_768
MAX_COMMENT_LENGTH = 2_000
PAGE = LinkPage(Path(__file__).parent / "templates", TEXTS, LANGUAGE_NAMES)


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
                return PAGE.render(request, None, "")
            company, rating = found
            return PAGE.render(request, await _load_view(db, company, rating.score), company.language)

    async def rate(request: Request) -> Response:
        """A second answer changes nothing: the page shows the first."""
        answer = _parse_answer(await read_form(request, MAX_BYTES))
        async with context.database.connection() as db:
            found = await _find_rating(db, request)
        if found is None:
            return PAGE.render(request, None, "")
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
        return PAGE.render(request, view, company.language)

    path = actions.PATH + "{token}"
    return [Route(path, show, methods=["GET"]), Route(path, rate, methods=["POST"])]


async def _find_rating(db: Connection, request: Request) -> tuple[Company, Rating] | None:
    link = parse_link(request)
    rating = await actions.find_by_token(db, *link) if link else None
    if link is None or rating is None:
        return None
    return await access.get_company(db, link[0]), rating


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
