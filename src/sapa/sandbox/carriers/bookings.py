"""The simulated carriers' bookings and callbacks."""

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from sapa.context import AppContext
from sapa.db.pool import Connection, Database, Tx
from sapa.sandbox import callbacks
from sapa.sandbox.accounts import build_secret
from sapa.sandbox.carriers import queries
from sapa.sandbox.carriers.queries import SimulatedBookingRow, get_now
from sapa.sandbox.carriers.scenarios import (
    Kind,
    ScenarioStep,
    build_steps,
    get_state,
    list_past,
)
from sapa.sandbox.types import PlannedCallback

MARK = "x-sandbox-booking"
"""The callback header with its booking, so that pending callbacks can be replaced."""


class Booking(Struct, frozen=True):
    """A booking as its simulator sees it now."""

    company_id: int
    adapter: str
    reference: str
    order_no: str
    awb: str
    scenario: str | None
    body: dict[str, Any]
    steps: list[ScenarioStep]
    booked_at: datetime
    now: datetime
    requests: int = 1

    @property
    def state(self) -> ScenarioStep:
        return get_state(self.steps, self.now)

    @property
    def past(self) -> list[ScenarioStep]:
        return list_past(self.steps, self.now)


class Posting(Struct, frozen=True):
    """A callback in the carrier's format."""

    headers: dict[str, str]
    body: bytes


Build = Callable[[AppContext, Booking, ScenarioStep], Posting | None]
"""Builds the callback of a step; None if the carrier sends none."""

RETENTION_DAYS = 90


async def book(
    context: AppContext, tx: Tx, company_id: int, adapter: str, kind: Kind, reference: str, scenario: str | None,
    body: Mapping[str, Any], build: Build,
) -> Booking | None:  # fmt: skip
    """None if the reference was booked before, which is counted."""
    now = await get_now(tx, company_id)
    steps = build_steps(kind, scenario, now)
    number = build_number(company_id, adapter, reference)
    booking = Booking(
        company_id,
        adapter,
        reference,
        f"SBX-{number[:16]}",
        f"SBX{number[16:28]}",
        scenario,
        dict(body),
        steps,
        now,
        now,
    )
    is_new = await queries.insert_booking(
        tx, company_id, adapter, reference, booking.order_no, booking.awb, scenario, msgspec.json.encode(body),
        msgspec.json.encode(steps), now,
    )  # fmt: skip
    if not is_new:
        await queries.count_request(tx, company_id, adapter, reference)
        return None
    await _schedule(context, tx, booking, steps[1:], build)
    return booking


async def find(db: Connection, company_id: int, adapter: str, key: str) -> Booking | None:
    """By our reference, the carrier's number or the awb."""
    row = await queries.find_booking(db, company_id, adapter, key)
    return _read(row, company_id, await get_now(db, company_id)) if row else None


async def lock(tx: Tx, company_id: int, adapter: str, key: str) -> Booking | None:
    row = await queries.find_locked_booking(tx, company_id, adapter, key)
    return _read(row, company_id, await get_now(tx, company_id)) if row else None


async def list_bookings(db: Connection, company_id: int) -> list[Booking]:
    """All bookings of a company's simulators, oldest first."""
    now = await get_now(db, company_id)
    return [_read(row, company_id, now) for row in await queries.list_bookings(db, company_id)]


async def purge_old(database: Database) -> None:
    """By real time, so that moving a test clock ahead deletes nothing."""
    async with database.connection() as db:
        await queries.purge_bookings(db, RETENTION_DAYS)


async def replace_steps(
    context: AppContext, tx: Tx, booking: Booking, steps: list[ScenarioStep], build: Build
) -> Booking:
    """Replaces the steps and the pending callbacks."""
    posted = {(step.state, step.at) for step in booking.past}
    await queries.drop_waiting(tx, booking.company_id, _mark(booking), booking.now)
    changed = msgspec.structs.replace(booking, steps=steps)
    await queries.set_steps(tx, booking.company_id, booking.adapter, booking.reference, msgspec.json.encode(steps))
    await _schedule(context, tx, changed, [step for step in steps if (step.state, step.at) not in posted], build)
    return changed


async def _schedule(context: AppContext, tx: Tx, booking: Booking, steps: Sequence[ScenarioStep], build: Build) -> None:
    if booking.scenario == "carrier_down":
        return
    path = "/hooks/carriers/" + build_secret(context, booking.company_id, f"hook/{booking.adapter}")
    postings = [(step, posting) for step in steps if (posting := build(context, booking, step))]
    delays = [max(0.0, (step.at - booking.now).total_seconds()) for step, _ in postings]
    if booking.scenario == "webhook_out_of_order":
        delays = _swap(delays)
    times = 2 if booking.scenario == "webhook_duplicate" else 1
    headers = {"content-type": "application/json", MARK: _mark(booking)}
    planned = [
        PlannedCallback({**headers, **posting.headers}, posting.body, delay)
        for delay, (_, posting) in zip(delays, postings, strict=True)
        for _ in range(times)
    ]
    await callbacks.schedule(tx, booking.company_id, path, planned)


def _swap(delays: list[float]) -> list[float]:
    """Swaps each pair."""
    swapped = delays.copy()
    for first in range(0, len(delays) - 1, 2):
        swapped[first], swapped[first + 1] = delays[first + 1] + 0.5, delays[first + 1]
    return swapped


def build_number(company_id: int, adapter: str, reference: str) -> str:
    digest = sha256(f"{company_id}/{adapter}/{reference}".encode()).digest()
    return base64.b32encode(digest).decode().rstrip("=")


def _mark(booking: Booking) -> str:
    return f"{booking.adapter}/{booking.reference}"


def _read(row: SimulatedBookingRow, company_id: int, now: datetime) -> Booking:
    return Booking(
        company_id, row.adapter, row.reference, row.order_no, row.awb, row.scenario,
        msgspec.json.decode(row.asked), msgspec.json.decode(row.steps, type=list[ScenarioStep]),
        row.booked_at, now, row.requests,
    )  # fmt: skip
