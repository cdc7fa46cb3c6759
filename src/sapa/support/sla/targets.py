"""Measures a ticket against a policy's targets. Pure.

Both clocks start with the customer's first message of a cycle. The first response ends with the first message of an
agent after it that went out, or with the resolution. The resolution's clock pauses while the ticket is snoozed.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from sapa.messaging.messages.types import Source
from sapa.support.business_hours.calendar import Calendar, add_open_time, count_open_time
from sapa.support.rows import StoredTicketEntry
from sapa.support.sla.types import SlaPolicy, Target, TargetFacts
from sapa.support.types import Priority, TicketSla
from sapa.values.instants import format_instant


def find_policy(
    policies: Sequence[SlaPolicy], priority: Priority, source: Source, label_ids: Collection[str]
) -> SlaPolicy | None:
    """The first that matches; an empty condition matches everything."""
    for policy in policies:
        is_labelled = not policy.label_ids or not set(policy.label_ids).isdisjoint(label_ids)
        is_prioritised = not policy.priorities or priority in policy.priorities
        if is_labelled and is_prioritised and (not policy.sources or source in policy.sources):
            return policy
    return None


def build_facts(entries: Sequence[StoredTicketEntry], sent: Collection[str]) -> TargetFacts | None:
    """What happened in a cycle. None before the customer's first message."""
    started_at: datetime | None = None
    responded_at: datetime | None = None
    resolved_at: datetime | None = None
    pauses: list[tuple[datetime, datetime | None]] = []
    for entry in entries:
        is_paused = bool(pauses) and pauses[-1][1] is None
        if entry.kind == "heard":
            started_at = started_at or entry.at
        elif entry.kind == "said" and resolved_at is None and (entry.is_dispatched or entry.message_id in sent):
            responded_at = responded_at or (entry.at if started_at else None)
        elif entry.kind == "snoozed" and not is_paused:
            pauses.append((entry.at, None))
        elif entry.kind in {"woken", "resolved"} and is_paused:
            pauses[-1] = (pauses[-1][0], entry.at)
        if entry.kind == "resolved":
            resolved_at = entry.at
    if started_at is None:
        return None
    return TargetFacts(started_at=started_at, responded_at=responded_at, pauses=tuple(pauses), resolved_at=resolved_at)


def build_sla(policy: SlaPolicy, calendar: Calendar, facts: TargetFacts, now: datetime) -> TicketSla:
    response_due, resolution_due = None, None
    if policy.first_response_minutes is not None:
        response_due = add_open_time(calendar, facts.started_at, timedelta(minutes=policy.first_response_minutes))
    if policy.resolution_minutes is not None:
        resolution_due = _build_resolution_due(calendar, facts, timedelta(minutes=policy.resolution_minutes))
    breached: list[Target] = []
    if response_due is not None and (facts.responded_at or facts.resolved_at or now) > response_due:
        breached.append("firstResponse")
    if resolution_due is not None and (facts.resolved_at or now) > resolution_due:
        breached.append("resolution")
    return TicketSla(
        policy_id=policy.id,
        first_response_due=_format(response_due),
        first_responded_at=_format(facts.responded_at),
        resolution_due=_format(resolution_due),
        breached=breached,
    )


def build_next_due(sla: TicketSla, facts: TargetFacts) -> datetime | None:
    """When a target is missed unless something happens before."""
    if facts.resolved_at is not None:
        return None
    dues = []
    if facts.responded_at is None and "firstResponse" not in sla.breached:
        dues.append(sla.first_response_due)
    if "resolution" not in sla.breached:
        dues.append(sla.resolution_due)
    return min((datetime.fromisoformat(due) for due in dues if due is not None), default=None)


def _build_resolution_due(calendar: Calendar, facts: TargetFacts, target: timedelta) -> datetime | None:
    """None while the clock is paused. A target that was missed before a pause stays missed."""
    remaining, running_since = target, facts.started_at
    for paused_at, resumed_at in facts.pauses:
        spent = count_open_time(calendar, running_since, paused_at)
        if spent >= remaining:
            break
        if resumed_at is None:
            return None
        # A channel may deliver the message that ends a pause late, with a time before its start.
        remaining, running_since = remaining - spent, max(running_since, paused_at, resumed_at)
    return add_open_time(calendar, running_since, remaining)


def _format(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)
