"""Programs outside subscribe to a simulator's callbacks, as they do at the provider."""

from collections.abc import Iterable
from enum import IntEnum
from secrets import token_hex
from urllib.parse import urlencode

from sapa.context import AppContext
from sapa.db.wakeups import DueQueue
from sapa.outbound.client import NotSent, Unclear
from sapa.outbound.guard import AddressRefused, check_url
from sapa.sandbox.subscriptions import queries

VERIFY_SECONDS = 10.0
MAX_CHALLENGE = 4096

QUEUE = DueQueue("sandbox deliveries", queries.NEXT_DELIVERIES.text)


class Level(IntEnum):
    """What an address is for. The most particular one gets the callbacks."""

    APP = 1
    BUSINESS_ACCOUNT = 2
    NUMBER = 3


class NotVerified(Exception):
    """The address did not return the challenge; the text says what happened instead."""


async def subscribe(
    context: AppContext, company_id: int, paths: Iterable[str], level: Level, url: str, verify_token: str
) -> None:
    """Asks the address for its consent first, without holding a connection; raises NotVerified."""
    try:
        checked = check_url(url, context.settings.webhooks)
    except AddressRefused as refused:
        raise NotVerified(f"The URL {refused}") from None
    await _verify(context, checked, verify_token)
    async with context.database.transaction() as tx:
        for path in paths:
            await queries.put_subscription(tx, company_id, path, level, checked)


async def unsubscribe(context: AppContext, company_id: int, paths: Iterable[str], level: Level) -> None:
    async with context.database.transaction() as tx:
        for path in paths:
            await queries.delete_subscription(tx, company_id, path, level)


async def find_url(context: AppContext, company_id: int, path: str, level: Level) -> str | None:
    async with context.database.connection() as db:
        found = await queries.list_subscriptions(db, company_id, path)
    return next((each.url for each in found if each.level == level), None)


async def _verify(context: AppContext, url: str, verify_token: str) -> None:
    challenge = token_hex(16)
    asked = {"hub.mode": "subscribe", "hub.challenge": challenge, "hub.verify_token": verify_token}
    question = url + ("&" if "?" in url else "?") + urlencode(asked)
    try:
        response = await context.client.fetch(question, MAX_CHALLENGE, seconds=VERIFY_SECONDS)
    except (NotSent, Unclear) as error:
        raise NotVerified(f"curl_error = {error}; HTTP Status Code = 0") from None
    if response.status != 200:
        raise NotVerified(f"HTTP Status Code = {response.status}")
    if response.body.strip() != challenge.encode():
        raise NotVerified("HTTP Status Code = 200; the response is not the challenge")
