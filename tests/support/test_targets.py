"""Business hours and the targets of tickets (SLA), compared with a plain recomputation minute by minute."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.db.pool import Database
from sapa.messaging.messages.types import Source
from sapa.support.business_hours.calendar import Calendar, add_open_time, build_calendar, count_open_time
from sapa.support.business_hours.types import DAYS, Holiday, OpenHours
from sapa.support.rows import StoredTicketEntry
from sapa.support.sla.targets import build_facts, build_sla, find_policy
from sapa.support.sla.types import SlaPolicy
from tests.factories import Environments
from tests.http.wire import eventually
from tests.support.test_filing import build_instant, put
from tests.support.test_tickets import list_events
from tests.support.ticket_steps import Desk

Json = dict[str, Any]

MINUTE = timedelta(minutes=1)
ZONES = ["Asia/Jakarta", "Asia/Kathmandu", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"]
CLOCK_CHANGES = [datetime(2026, 3, 7, tzinfo=UTC), datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 3, tzinfo=UTC)]
"""Days before clocks change somewhere."""
DAYS_OFF = [(change + timedelta(days=days)).date() for change in CLOCK_CHANGES for days in range(6)]


class History:
    """What happened in a ticket, in minutes since its start."""

    def __init__(self, start: datetime, steps: Sequence[tuple[int, str]]) -> None:
        self.steps = [(start, "heard")]
        for minutes, kind in steps:
            self.steps.append((self.steps[-1][0] + minutes * MINUTE, kind))

    def build_entries(self) -> list[StoredTicketEntry]:
        return [
            StoredTicketEntry(number, 1, kind, at, None, None, None, None, None, None, "sent")
            for number, (at, kind) in enumerate(self.steps, start=1)
        ]

    def is_snoozed(self, at: datetime) -> bool:
        kinds = [kind for when, kind in self.steps if when <= at and kind in {"snoozed", "woken", "resolved"}]
        return bool(kinds) and kinds[-1] == "snoozed"


@st.composite
def week_hours(draw: st.DrawFn) -> list[OpenHours]:
    """Away from the hours of the night in which clocks change."""
    hours = []
    for day in draw(st.lists(st.sampled_from(DAYS), unique=True, max_size=7)):
        opens, breaks, resumes, closes = sorted(
            draw(st.lists(st.integers(12, 46), min_size=4, max_size=4, unique=True))
        )
        spans = draw(st.sampled_from([[(opens, closes)], [(opens, breaks), (resumes, closes)], [(0, 48)]]))
        hours += [OpenHours(day=day, opens=show(first), closes=show(last)) for first, last in spans]
    return hours


def show(halves: int) -> str:
    return f"{halves // 2:02d}:{halves % 2 * 30:02d}"


calendars = st.builds(
    build_calendar,
    st.sampled_from(ZONES),
    week_hours(),
    st.lists(st.sampled_from(DAYS_OFF).map(lambda day: Holiday(date=day)), max_size=3),
)
starts = st.builds(lambda base, minutes: base + minutes * MINUTE, st.sampled_from(CLOCK_CHANGES), st.integers(0, 4_000))
histories = st.builds(
    History,
    starts,
    st.builds(
        list.__add__,
        st.lists(st.tuples(st.integers(0, 900), st.sampled_from(["said", "snoozed", "woken", "heard"])), max_size=6),
        st.lists(st.tuples(st.integers(0, 900), st.just("resolved")), max_size=1),
    ),
)


def is_open(calendar: Calendar, at: datetime) -> bool:
    """By the clock on the wall."""
    local = at.astimezone(calendar.zone)
    if local.date() in calendar.holidays:
        return False
    shown = timedelta(hours=local.hour, minutes=local.minute)
    return any(opens <= shown < closes for opens, closes in calendar.hours_by_day[local.weekday()])


def find_due(calendar: Calendar, history: History, minutes: int, *, pauses: bool) -> datetime | None:
    """Minute by minute: when as many open minutes have passed. None if that is too far away to look."""
    at, last = history.steps[0][0], history.steps[-1][0]
    for _ in range(12_000):
        if at > last and pauses and history.is_snoozed(last):
            return None
        if is_open(calendar, at) and not (pauses and history.is_snoozed(at)):
            minutes -= 1
        at += MINUTE
        if minutes == 0:
            return at
    return None


def build_policy(**fields: Any) -> SlaPolicy:
    values: Json = {"priorities": [], "sources": [], "label_ids": []}
    values |= {"first_response_minutes": None, "resolution_minutes": None, **fields}
    now = "2026-01-31T09:30:00.000Z"
    return SlaPolicy(
        id="sla_01jc9y3q5me8w92v7x4t6r0n1k", name="x", position=0, in_business_hours=True, created_at=now,
        updated_at=now, **values,
    )  # fmt: skip


@given(calendars, histories, st.integers(1, 900), st.integers(1, 2_000))
def test_targets_equal_a_plain_recomputation(
    calendar: Calendar, history: History, response: int, resolution: int
) -> None:
    facts = build_facts(history.build_entries(), ())
    assert facts is not None
    now = history.steps[-1][0]
    policy = build_policy(first_response_minutes=response, resolution_minutes=resolution)
    sla = build_sla(policy, calendar, facts, now)
    responded = next((at for at, kind in history.steps if kind == "said"), None)
    if (due := find_due(calendar, history, response, pauses=False)) is not None:
        assert sla.first_response_due is not None
        assert datetime.fromisoformat(sla.first_response_due) == due
        assert ("firstResponse" in sla.breached) == ((responded or now) > due)
    due = find_due(calendar, history, resolution, pauses=True)
    if due is not None:
        assert sla.resolution_due is not None
        assert datetime.fromisoformat(sla.resolution_due) == due
        assert ("resolution" in sla.breached) == (now > due)
    elif history.is_snoozed(now):
        assert sla.resolution_due is None


@given(calendars, starts, st.integers(0, 5_000), st.integers(1, 3_000))
def test_counting_and_adding_open_time_agree(calendar: Calendar, start: datetime, span: int, target: int) -> None:
    end = start + span * MINUTE
    counted = count_open_time(calendar, start, end)
    assert counted == sum((MINUTE for n in range(span) if is_open(calendar, start + n * MINUTE)), timedelta(0))
    due = add_open_time(calendar, start, target * MINUTE)
    assert count_open_time(calendar, start, due) == target * MINUTE


def test_a_day_on_which_clocks_change_has_its_real_hours() -> None:
    calendar = build_calendar("Europe/Berlin", [], [])
    zone = ZoneInfo("Europe/Berlin")
    spring = datetime(2026, 3, 29, tzinfo=zone).astimezone(UTC), datetime(2026, 3, 30, tzinfo=zone).astimezone(UTC)
    assert count_open_time(calendar, *spring) == timedelta(hours=23)


def test_the_first_policy_that_matches_applies() -> None:
    urgent = build_policy(priorities=["urgent"])
    labelled = build_policy(label_ids=["lab_1"], sources=[Source.MAIL])
    policies = [urgent, labelled]
    assert find_policy(policies, "urgent", Source.MAIL, ["lab_1"]) is urgent
    assert find_policy(policies, "normal", Source.MAIL, ["lab_0", "lab_1"]) is labelled
    assert find_policy(policies, "normal", Source.MAIL, []) is None
    assert find_policy(policies, "normal", Source.WIDGET, ["lab_1"]) is None


async def test_business_hours_are_set_for_the_company(desk: Desk) -> None:
    assert await desk.get("/business-hours") == {
        "timeZone": "Asia/Jakarta", "weekly": [], "holidays": [], "updatedAt": None,
    }  # fmt: skip
    weekly = [
        {"day": "monday", "opens": "09:00", "closes": "12:00"},
        {"day": "monday", "opens": "13:00", "closes": "24:00"},
    ]
    holidays = [{"date": "2026-08-17", "name": "Hari Kemerdekaan"}]
    stored = await put(desk, "/business-hours", timeZone="Asia/Makassar", weekly=weekly, holidays=holidays)
    assert await desk.get("/business-hours") == stored
    assert (stored["weekly"], stored["holidays"], stored["timeZone"]) == (weekly, holidays, "Asia/Makassar")
    overlapping = [weekly[0], weekly[1] | {"opens": "11:00"}]
    for wrong in ({"timeZone": "WIB"}, {"weekly": overlapping}, {"weekly": [weekly[0] | {"closes": "09:00"}]}):
        assert (await desk.client.put("/business-hours", json={"weekly": [], **wrong})).status_code == 400


@pytest.mark.smoke
async def test_a_ticket_misses_its_targets(desk: Desk, database: Database, company: Environments) -> None:
    sari = await desk.create_agent()
    fields = {"firstResponseMinutes": 30, "resolutionMinutes": 120, "inBusinessHours": False}
    policy = await desk.post("/sla-policies", 201, name="Semua", **fields)
    assert (await desk.post("/sla-policies", 409, name="semua", **fields))["code"] == "SLA_POLICY_EXISTS"
    assert (await desk.client.post("/sla-policies", json={"name": "x"})).status_code == 400
    ticket = await desk.receive()
    started = datetime.fromisoformat(ticket["waitingSince"])
    due = {name: datetime.fromisoformat(ticket["sla"][name]) for name in ("firstResponseDue", "resolutionDue")}
    assert due == {"firstResponseDue": started + 30 * MINUTE, "resolutionDue": started + 120 * MINUTE}
    assert (ticket["sla"]["policyId"], ticket["sla"]["breached"]) == (policy["id"], [])
    await desk.pass_time(31 * 60)

    async def look() -> Json | None:
        seen = await desk.look(ticket)
        return seen if seen["sla"]["breached"] else None

    late = await eventually(look)
    assert late["sla"]["breached"] == ["firstResponse"]
    assert (await list_events(database, company.test))[-1] == "ticket.sla.breached"
    assert [each["id"] for each in await desk.get("/tickets", breached="true")] == [ticket["id"]]
    assert await desk.get("/tickets", breached="false") == []
    await desk.reply(ticket, sari)

    async def look_answered() -> Json | None:
        seen = await desk.look(ticket)
        return seen if seen["sla"]["firstRespondedAt"] else None

    await eventually(look_answered)
    resolved = await desk.act(ticket, "resolve")
    assert resolved["sla"]["breached"] == ["firstResponse"]
    again = await desk.receive("Lagi")
    assert (again["cycle"], again["sla"]["breached"], again["sla"]["firstRespondedAt"]) == (2, [], None)


async def test_snoozing_pauses_the_resolution_and_priority_changes_the_policy(desk: Desk) -> None:
    await desk.post("/sla-policies", 201, name="Lain", position=2, resolutionMinutes=600, inBusinessHours=False)
    ticket = await desk.receive()
    path = f"/tickets/{ticket['id']}"
    fields = {"priorities": ["urgent"], "firstResponseMinutes": 5, "inBusinessHours": False}
    urgent = await desk.post("/sla-policies", 201, name="Mendesak", position=1, **fields)
    changed = await put(desk, path, priority="urgent")
    assert (changed["sla"]["policyId"], changed["sla"]["resolutionDue"]) == (urgent["id"], None)
    before = (await put(desk, path, priority="low"))["sla"]["resolutionDue"]
    assert (await put(desk, path, snoozedUntil=build_instant(hours=5)))["sla"]["resolutionDue"] is None
    await desk.pass_time(3600)
    after = (await put(desk, path, snoozedUntil=None))["sla"]["resolutionDue"]
    moved = datetime.fromisoformat(after) - datetime.fromisoformat(before)
    assert timedelta(hours=1) <= moved < timedelta(hours=4)
    assert (await desk.client.delete(f"/sla-policies/{urgent['id']}")).status_code == 204
