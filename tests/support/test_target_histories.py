"""Targets (SLA) of real tickets through random histories, compared with a plain recomputation from what is stored."""

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import dropwhile, pairwise, takewhile
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from msgspec import Struct

from sapa.db.pool import Database
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.conversation_steps import simulate_inbound
from tests.support.test_filing import put
from tests.support.ticket_steps import Desk

Json = dict[str, Any]

SEEDS = [pytest.param(seed, marks=[pytest.mark.long] if seed else []) for seed in range(20)]
STEPS = 9
TRIES = 1_000
FAR = 120
"""Days that the plain recomputation looks ahead."""
ZONES = ("Asia/Jakarta", "Asia/Jayapura", "Asia/Kathmandu", "America/Caracas", "Pacific/Marquesas", "Australia/Eucla")
"""Whose clocks never change: other tests are about those that do."""
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MAIL = {"source": "MAIL", "from": "ayu@example.com"}
"""Mail has no window for replies that would close meanwhile."""

JOURNAL = """
    SELECT e.kind, e.at, m.status
      FROM tickets t
      JOIN ticket_events e ON e.company_id = t.company_id AND e.ticket_id = t.id AND e.cycle = t.cycle
      LEFT JOIN messages m ON m.company_id = t.company_id AND m.id = e.message_id
     WHERE t.company_id = $1 AND t.id = $2
     ORDER BY e.number"""
STORED = """
    SELECT t.sla::text, now() + c.clock_offset AS now
      FROM tickets t JOIN companies c ON c.company_id = t.company_id
     WHERE t.company_id = $1 AND t.id = $2"""


class Rules(Struct, frozen=True):
    """What the company promises: minutes for each target, within these hours."""

    hours: Json
    response: int
    resolution: int


def draw_rules(dice: random.Random) -> Rules:
    weekly = []
    for day in dice.sample(DAYS, dice.choice([0, 3, 4, 5, 6, 7])):
        opens, breaks, resumes, closes = sorted(dice.sample(range(97), 4))
        weekly += [{"day": day, "opens": show(opens), "closes": show(breaks)}]
        weekly += [{"day": day, "opens": show(resumes), "closes": show(closes)}]
    today = datetime.now(UTC).date()
    holidays = [
        {"date": str(today + timedelta(days=dice.randint(0, 9))), "name": ""} for _ in range(dice.randint(0, 3))
    ]
    hours = {"timeZone": dice.choice(ZONES), "weekly": weekly, "holidays": holidays}
    return Rules(hours, dice.randint(1, 600), dice.randint(1, 900))


def show(quarters: int) -> str:
    return f"{quarters // 4:02}:{quarters % 4 * 15:02}"


class Entry(Struct, frozen=True):
    kind: str
    at: datetime
    is_sent: bool


def is_open(hours: Json, at: datetime) -> bool:
    """By the clock on the wall."""
    local = at.astimezone(ZoneInfo(hours["timeZone"]))
    if str(local.date()) in {holiday["date"] for holiday in hours["holidays"]}:
        return False
    spans = [(one["opens"], one["closes"]) for one in hours["weekly"] if one["day"] == DAYS[local.weekday()]]
    return not hours["weekly"] or any(opens <= f"{local:%H:%M}" < closes for opens, closes in spans)


def is_snoozed(entries: Sequence[Entry], at: datetime) -> bool:
    """Each pause lasts from the first snooze to whatever ends it, which a late message may date before it."""
    paused_at = None
    for entry in entries:
        if entry.kind == "snoozed":
            paused_at = paused_at or entry.at
        elif entry.kind in {"woken", "resolved"} and paused_at is not None:
            if paused_at <= at < entry.at:
                return True
            paused_at = None
    return paused_at is not None and paused_at <= at


def find_due(hours: Json, start: datetime, minutes: int, entries: Sequence[Entry]) -> datetime | None:
    """Time is cut at every quarter of an hour and at every entry, so that each piece is counted whole or not at all."""
    left, zero = timedelta(minutes=minutes), start.replace(minute=0, second=0, microsecond=0)
    quarters = [zero + n * timedelta(minutes=15) for n in range(FAR * 96)]
    cuts = sorted({start, *(at for at in quarters if at > start), *(one.at for one in entries if one.at > start)})
    for begin, end in pairwise(cuts):
        middle = begin + (end - begin) / 2
        if is_snoozed(entries, middle) or not is_open(hours, middle):
            continue
        if left <= end - begin:
            return begin + left
        left -= end - begin
    return None


def recompute(rules: Rules, entries: Sequence[Entry], now: datetime) -> Json | None:
    """What the ticket should say about its targets; None before the customer wrote."""
    started = next((entry.at for entry in entries if entry.kind == "heard"), None)
    if started is None:
        return None
    resolved = next((entry.at for entry in entries if entry.kind == "resolved"), None)
    active = takewhile(lambda entry: entry.kind != "resolved", dropwhile(lambda entry: entry.kind != "heard", entries))
    responded = next((entry.at for entry in active if entry.kind == "said" and entry.is_sent), None)
    response = find_due(rules.hours, started, rules.response, ())
    resolution = find_due(rules.hours, started, rules.resolution, entries)
    missed = {
        "firstResponse": response is not None and (responded or resolved or now) > response,
        "resolution": resolution is not None and (resolved or now) > resolution,
    }
    return {
        "firstResponseDue": response,
        "firstRespondedAt": responded,
        "resolutionDue": resolution,
        "breached": [target for target, is_missed in missed.items() if is_missed],
    }


class Case(Struct, frozen=True):
    """A ticket with its history so far."""

    desk: Desk
    database: Database
    company_id: int
    rules: Rules
    dice: random.Random
    ticket: Json
    agent_id: int

    async def read(self) -> tuple[Json | None, list[Entry], datetime]:
        async with (
            self.database.connection() as db,
            db.transaction(isolation="repeatable_read", readonly=True),
        ):
            stored = await db.fetchrow(STORED, self.company_id, self.ticket["id"])
            assert stored is not None
            journal = await db.fetch(JOURNAL, self.company_id, self.ticket["id"])
        sent = {"sent", "delivered", "read"}
        entries = [Entry(row["kind"], datetime.fromisoformat(row["at"]), row["status"] in sent) for row in journal]
        sla = msgspec.json.decode(stored["sla"]) if stored["sla"] else None
        for name in ("firstResponseDue", "firstRespondedAt", "resolutionDue"):
            if sla and sla[name]:
                sla[name] = datetime.fromisoformat(sla[name])
        return sla, entries, datetime.fromisoformat(stored["now"])

    async def check(self) -> None:
        """Waits for what the worker still has to do: to wake it, to mark a target as missed, to record a sent reply."""
        for _ in range(TRIES):
            sla, entries, now = await self.read()
            if sla:
                del sla["policyId"]
            expected = recompute(self.rules, entries, now)
            if sla == expected:
                return
            await asyncio.sleep(0.05)
        assert sla == expected, entries

    async def step(self) -> None:
        verb = self.dice.choice(["wait", "wait", "write", "reply", "snooze", "snooze", "wake", "resolve", "reopen"])
        path = f"/tickets/{self.ticket['id']}"
        if verb == "wait":
            await self.desk.pass_time(self.dice.randint(1, 1_500) * 60)
        elif verb == "write":
            inbound = await simulate_inbound(self.desk.client, text="Bagaimana?", **MAIL)
            await eventually(lambda: self.desk.find_ticket_of(inbound["messageId"]))
        elif verb in {"snooze", "wake"}:
            _, _, now = await self.read()
            until = (now + timedelta(minutes=self.dice.randint(5, 2_000))).isoformat() if verb == "snooze" else None
            answer = await self.desk.client.put(path, json={"snoozedUntil": until})
            assert answer.status_code in {200, 409}, answer.text  # a resolved ticket cannot be snoozed
        elif verb == "reply":
            await self.desk.reply(self.ticket, self.agent_id)
        else:
            await self.desk.act(self.ticket, verb)


@pytest.mark.parametrize("seed", SEEDS)
async def test_stored_targets_equal_a_plain_recomputation_after_every_step(
    desk: Desk, database: Database, company: Environments, seed: int
) -> None:
    dice = random.Random(seed)
    rules = draw_rules(dice)
    await put(desk, "/business-hours", **rules.hours)
    await put(desk, "/support/settings", autoResolveHours=0, reopenWindowHours=720)
    targets = {"firstResponseMinutes": rules.response, "resolutionMinutes": rules.resolution}
    await desk.post("/sla-policies", 201, name="Semua", **targets)
    agent_id = await desk.create_agent()
    ticket = await desk.receive("Masih ada?", MAIL["from"], MAIL["source"])
    case = Case(desk, database, company.test, rules, dice, ticket, agent_id)
    await case.check()
    for _ in range(STEPS):
        await case.step()
        await case.check()
