"""Asks customers for ratings, and takes their answers."""

import re
from secrets import token_urlsafe

import structlog

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.db.pool import Connection, Tx, announce_due, notify_after_commit
from sapa.events import emit
from sapa.http.errors import ApiError, Invalid
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.messages.types import Source
from sapa.messaging.sending import actions as sending
from sapa.messaging.sending.types import InteractiveMessageIn, ListIn, MessageIn, RowIn, SectionIn
from sapa.messaging.tickets import build_tickets_channel
from sapa.support.agents import actions as agents
from sapa.support.ratings import queries
from sapa.support.ratings.page_words import QUESTIONS, TEXTS
from sapa.support.ratings.types import (
    RATING_ID,
    AlreadyRated,
    DueRating,
    Rating,
    RatingIn,
    RatingQuestion,
    RatingReceived,
)
from sapa.support.rows import LockedTicket
from sapa.values.company import Company

_parse_choice = re.compile(r"rating:([A-Za-z0-9_-]{16,64}):([1-5])", re.ASCII).fullmatch

PATH = "/rate/"
TOKEN_BYTES = 24
MAX_TRIES = 4
RETRY_SECONDS = 30.0

log = structlog.get_logger()


async def ask(tx: Tx, company: Company, resolved: LockedTicket) -> None:
    """Queues the question about a resolved ticket, if the company asks and somebody handled the ticket."""
    if resolved.agent_id is None or not (await agents.get_settings(tx, company)).ask_rating:
        return
    columns = (resolved.id, resolved.cycle, resolved.agent_id, resolved.customer_id, resolved.source)
    token, now = token_urlsafe(TOKEN_BYTES), (await read_clock(tx, company.id)).now
    await queries.insert_rating(tx, company.id, RATING_ID.new(), *columns, token, now)
    announce_due(tx, queries.QUEUE)


async def rate(tx: Tx, company: Company, id: str, body: RatingIn) -> Rating:
    """Takes the customer's answer, once."""
    rating = await queries.lock_rating(tx, company.id, id)
    if rating.status == "rated":
        raise AlreadyRated
    comment = (body.comment or "").strip() or None
    if comment and "\0" in comment:
        raise Invalid.field("comment", "must not contain a NUL character")
    now = (await read_clock(tx, company.id)).now
    rated = await queries.set_answer(tx, company.id, rating, body.score, comment, now)
    notify_after_commit(tx, build_tickets_channel(company.id))
    await emit(tx, company, RatingReceived(rated))
    return rated


async def rate_ticket(tx: Tx, company: Company, ticket_id: str, body: RatingIn) -> Rating | None:
    """Takes the customer's answer about a ticket; None if nobody asked."""
    found, _ = await queries.list_ratings(tx, company.id, {"ticket_id": ticket_id}, 1, 0)
    return await rate(tx, company, found[0].id, body) if found else None


async def rate_by_choice(tx: Tx, company: Company, choice_id: str) -> Rating | None:
    """Takes the score of a row that `send_question` offered; None for any other choice. A second score is ignored."""
    chosen = _parse_choice(choice_id)
    rating = await queries.find_by_token(tx, company.id, chosen[1]) if chosen else None
    if chosen is None or rating is None:
        return None
    try:
        return await rate(tx, company, rating.id, RatingIn(score=int(chosen[2])))
    except AlreadyRated:
        return rating


async def find_by_token(db: Connection, company_id: int, token: str) -> Rating | None:
    return await queries.find_by_token(db, company_id, token)


async def list_due(context: AppContext, most: int) -> list[DueRating]:
    async with context.database.connection() as db:
        return await queries.list_due(db, most)


async def send_question(context: AppContext, company: Company, due: DueRating) -> None:
    """Over the ticket's channel. What the channel refuses, such as after its reply window, is not asked."""
    async with context.database.transaction() as tx:
        question = await queries.claim(tx, due)
    if question is None:
        return
    link = f"{context.settings.server.address}{PATH}{company.id}-{question.token}"
    body = _build_question(company, question, link)
    try:
        await sending.send_automatically(context, company, body, connection_id=question.connection_id)
    except ApiError as error:
        async with context.database.transaction() as tx:
            if error.status in {429, 503} and question.tries < MAX_TRIES:
                await queries.postpone(tx, due, RETRY_SECONDS)
                return
            await queries.mark_failed(tx, due)
        log.info("rating not asked", company_id=company.id, rating_id=due.id, reason=error.message)


def _build_question(company: Company, question: RatingQuestion, link: str) -> MessageIn | InteractiveMessageIn:
    """A list to choose from where the channel has one. The link is for a comment, and for all other channels."""
    language = company.language if company.language in TEXTS else "id"
    text, words = QUESTIONS[language].format(link=link), TEXTS[language]
    if not CHANNELS[Source(question.source)].capabilities.has_choices:
        return MessageIn(to=question.identity, sources=question.source, message=text)
    rows = [
        RowIn(id=f"rating:{question.token}:{score}", title=f"{score} · {words[str(score)]}")
        for score in range(5, 0, -1)
    ]
    choices = ListIn(body=text, button=words["title"], sections=[SectionIn(title=words["scores"], rows=rows)])
    return InteractiveMessageIn(to=question.identity, sources=question.source, interactive=choices)
