"""Stops, starts, imports, updates and sends at the same time: after a stop nothing is sent, and no program lifts it."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import msgspec
import pytest
from msgspec import Struct, field

from sapa.db.pool import Database
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_key
from tests.http.wire import eventually
from tests.messaging.consents.steps import find_link, make_promo, post_link, read_mails, send_promo
from tests.messaging.conversation_steps import simulate_inbound

Json = dict[str, Any]

MAX_AFTER_STOP = timedelta(seconds=1)
SLICES = 10
STEPS = 4
PAUSE_SECONDS = 0.15

LIST_CHOICES = """
    SELECT status, created_at FROM consent_records
     WHERE company_id = $1 AND key = $2 AND app = 'CRM' AND is_by_person
     ORDER BY created_at, id"""
LIST_ACCEPTED = """
    SELECT asked_at FROM sandbox_outbox
     WHERE company_id = $1 AND status BETWEEN 200 AND 299 AND strpos(headers::text || body, $2) > 0
       AND (strpos(body, '"promo"') > 0 OR strpos(body, 'ada promo hari ini') > 0)"""


class Shop(Struct, frozen=True):
    """Both APIs of one test environment."""

    database: Database
    company_id: int
    customers: httpx.AsyncClient
    messages: httpx.AsyncClient
    dice: random.Random


class Person(Struct):
    """Somebody with an e-mail address or a number, and what happened to them."""

    shop: Shop
    source: str
    to: str
    external_id: str
    customer_id: str
    link: str | None = None
    stopped_at: datetime | None = None
    """When the last stop was certainly committed; None after a start was asked for."""
    pauses: list[tuple[datetime, datetime]] = field(default_factory=list)
    """From when a stop was certainly committed until a start was asked for."""
    violations: list[str] = field(default_factory=list)

    @property
    def fields(self) -> Json:
        return {"email" if self.source == "MAIL" else "phoneNumber": self.to}

    async def stop(self) -> None:
        await self._choose("unsubscribe", b"List-Unsubscribe=One-Click", "STOP")
        self.stopped_at = self.stopped_at or datetime.now(UTC)

    async def start(self) -> None:
        if self.stopped_at is not None:
            self.pauses.append((self.stopped_at, datetime.now(UTC)))
        self.stopped_at = None
        await self._choose("subscribe", b"choice=subscribe", "START")

    async def _choose(self, status: str, form: bytes, word: str) -> None:
        if self.link is not None:
            assert (await post_link(self.link, form)).status_code == 200
            return
        was_stopped = await self._has_chosen("unsubscribe")
        await simulate_inbound(self.shop.messages, source=self.source, text=word, **{"from": self.to})
        if status == "unsubscribe" or was_stopped:  # a start without a stop is a message like any other
            await eventually(partial(self._has_chosen, status))

    async def _has_chosen(self, status: str) -> bool | None:
        return True if [choice for choice, _ in (await self.list_choices())[-1:]] == [status] else None

    async def list_choices(self) -> list[tuple[str, datetime]]:
        async with self.shop.database.connection() as db:
            rows = await db.fetch(LIST_CHOICES, self.shop.company_id, self.to)
        return [(row[0], datetime.fromisoformat(row[1])) for row in rows]

    async def list_accepted(self) -> list[datetime]:
        async with self.shop.database.connection() as db:
            rows = await db.fetch(LIST_ACCEPTED, self.shop.company_id, self.to.removeprefix("+"))
        return [datetime.fromisoformat(row[0]) for row in rows]

    async def send(self) -> None:
        began, stopped_at = datetime.now(UTC), self.stopped_at
        answer = await send_promo(self.shop.messages, self.to, self.source)
        assert answer.status_code in {200, 409}, answer.text
        if (
            answer.status_code == 200
            and stopped_at is not None
            and stopped_at < began
            and self.stopped_at == stopped_at
        ):
            self.violations.append("a promotion was accepted that was sent after the stop")

    async def update(self) -> None:
        dice = self.shop.dice
        app, status = dice.choice(["CRM", self.source]), dice.choice(["subscribe", "subscribe", "unsubscribe"])
        entries: list[Json] | None = dice.choice([[{"app": app, "status": status}], [], None])
        body = {**self.fields, "firstName": f"Ayu {dice.random():.4f}", "subscriptionStatus": entries}
        path = dice.choice([f"/customers/{self.customer_id}", f"/customers/by-external-id/{self.external_id}"])
        answer = await self.shop.customers.put(path, json=body)
        # The customer may be deleted or created at the same time.
        assert answer.status_code in {200, 201, 404, 409}, answer.text

    async def record(self) -> None:
        proof = {"text": "Ya", "place": "form"}
        body = {"app": self.source, "status": "subscribe", "proof": proof}
        answer = await self.shop.customers.post(f"/customers/{self.customer_id}/consents", json=body)
        assert answer.status_code in {201, 404, 409}, answer.text

    async def replace(self) -> None:
        """Deleted, and created again with everything subscribed."""
        subscriptions = [{"app": app, "status": "subscribe"} for app in ("CRM", self.source)]
        await self.shop.customers.delete(f"/customers/{self.customer_id}")
        body = {**self.fields, "externalId": self.external_id, "subscriptionStatus": subscriptions}
        answer = await self.shop.customers.post("/customers", json=body)
        if answer.status_code == 201:
            self.customer_id = answer.json()["data"]["id"]

    async def subscribe_again(self) -> None:
        """Whatever programs did before, only the person's own stop decides now."""
        subscriptions = [{"app": app, "status": "subscribe"} for app in ("CRM", self.source)]
        body = {**self.fields, "subscriptionStatus": subscriptions}
        found = (await self.shop.customers.get("/customers", params={"search": self.to})).json()["data"]
        if found:
            answer = await self.shop.customers.put(f"/customers/{found[0]['id']}", json=body)
        else:
            answer = await self.shop.customers.post("/customers", json=body)
        assert answer.status_code in {200, 201}, answer.text


@pytest.fixture
async def shop(installation: Installation, database: Database, company: Environments) -> AsyncIterator[Shop]:
    headers = {"x-api-key": (await make_key(database, company.test)).raw}
    bases = (installation.customer_base, f"{installation.address}/messaging/v1")
    # Closed here before the server closes them.
    limits = httpx.Limits(keepalive_expiry=1)
    customers, messages = (
        httpx.AsyncClient(base_url=base, headers=headers, timeout=120, verify=TLS, limits=limits) for base in bases
    )
    async with customers, messages:
        await make_promo(messages)
        yield Shop(database, company.test, customers, messages, random.Random(17))


async def make_person(shop: Shop, number: int) -> Person:
    is_mail = number % 4 != 0
    source, to = ("MAIL", f"p{number}@example.com") if is_mail else ("MSGAPP_CLOUD", f"+62812{number + 50_000_000}")
    person = Person(shop, source, to, f"own-{number}", "")
    answer = await shop.customers.post("/customers", json={**person.fields, "externalId": person.external_id})
    assert answer.status_code == 201, answer.text
    person.customer_id = answer.json()["data"]["id"]
    if is_mail:
        sent = await send_promo(shop.messages, to, source)
        assert sent.status_code == 200, sent.text
    return person


async def make_people(shop: Shop, start: int, count: int) -> list[Person]:
    people = await asyncio.gather(*(make_person(shop, start + number) for number in range(count)))
    links = {mail["To"]: find_link(mail) for mail in await read_mails(shop.messages)}
    for person in people:
        person.link = links.get(person.to)
    return people


async def live_through(person: Person) -> None:
    """The person's own steps one after the other; programs and senders at the same time, in any order."""
    dice = person.shop.dice

    async def run(steps: Sequence[Callable[[], Awaitable[None]]]) -> None:
        for step in steps:
            await asyncio.sleep(dice.random() * PAUSE_SECONDS)
            await step()

    choices = [dice.choice([person.stop, person.stop, person.start]) for _ in range(STEPS // 2)]
    programs = [dice.choice([person.update, person.update, person.record, person.replace]) for _ in range(STEPS)]
    async with asyncio.TaskGroup() as tasks:
        for steps in ([*choices, person.stop], programs, [person.send] * STEPS):
            tasks.create_task(run(steps))


async def check(person: Person) -> timedelta:
    """After a last stop: refused, whatever programs say. Returns how long after a stop a message was accepted at
    most."""
    await person.subscribe_again()
    answer = await send_promo(person.shop.messages, person.to, person.source)
    assert (answer.status_code, answer.json().get("error", {}).get("code")) == (409, "CONSENT_MISSING"), answer.text
    shown = (await person.shop.customers.get("/customers", params={"search": person.to})).json()["data"]
    assert [{"app": person.source, "status": "unsubscribe"} in one["subscriptionStatus"] for one in shown] == [True]
    assert person.violations == []
    assert person.stopped_at is not None
    pauses = [*person.pauses, (person.stopped_at, datetime.max.replace(tzinfo=UTC))]
    accepted = await person.list_accepted()
    late = [at - since for at in accepted for since, until in pauses if since < at < until]
    return max(late, default=timedelta(0))


async def interleave(shop: Shop, count: int, at_once: int) -> list[timedelta]:
    late = []
    for start in range(0, count, at_once):
        people = await make_people(shop, start, at_once)
        import_id = await upload(shop, people)
        async with asyncio.TaskGroup() as tasks:
            for person in people:
                tasks.create_task(live_through(person))
        await eventually(partial(find_finished, shop, import_id))
        async with asyncio.TaskGroup() as tasks:
            checks = [tasks.create_task(check(person)) for person in people]
        late += [done.result() for done in checks]
    return late


async def upload(shop: Shop, people: Sequence[Person]) -> str:
    """A file with all of them, subscribed to everything."""
    subscriptions = [{"app": app, "status": "subscribe"} for app in ("CRM", "MAIL", "MSGAPP_CLOUD")]
    rows = [
        {"externalId": person.external_id, **person.fields, "subscriptionStatus": subscriptions} for person in people
    ]
    content, headers = b"\n".join(map(msgspec.json.encode, rows)), {"content-type": "application/x-ndjson"}
    answer = await shop.customers.post("/imports", params={"resource": "customers"}, content=content, headers=headers)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def find_finished(shop: Shop, id: str) -> Json | None:
    found: Json = (await shop.customers.get(f"/imports/{id}")).json()["data"]
    return found if found["status"] not in {"queued", "running"} else None


async def test_after_a_stop_nothing_is_sent_and_no_program_lifts_it(shop: Shop) -> None:
    await interleave(shop, 8, 8)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SLICES))
async def test_two_thousand_interleavings(shop: Shop, seed: int) -> None:
    shop.dice.seed(seed)
    late = await interleave(shop, 2_000 // SLICES, 20)
    assert len(late) == 2_000 // SLICES
    print(f"{sum(map(bool, late))} of {len(late)} got a message after a stop, at most {max(late)} later")
    assert max(late) <= MAX_AFTER_STOP
