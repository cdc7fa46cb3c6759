"""How urgent a wait is, by its target."""

from datetime import timedelta
from typing import Any, Literal

import pytest

from sapa.console.company_clock import CompanyTime, NextTarget, find_due

CLOCK = CompanyTime(0)


def build_ticket(waited: int, goal: int | None, *, is_answered: bool = False, status: str = "open") -> dict[str, Any]:
    """Someone has waited for so many minutes, and should wait at most so many."""
    now = CLOCK.now
    due = None if goal is None else (now + timedelta(minutes=goal - waited)).isoformat()
    sla = None if goal is None else {"firstResponseDue": due, "resolutionDue": None, "firstRespondedAt": None}
    if sla and is_answered:
        sla |= {"firstRespondedAt": now.isoformat(), "resolutionDue": (now + timedelta(days=1)).isoformat()}
    return {"waitingSince": (now - timedelta(minutes=waited)).isoformat(), "sla": sla, "status": status}


@pytest.mark.parametrize(
    ("waited", "goal", "tone"), [(5, None, ""), (5, 60, ""), (29, 60, ""), (31, 60, "wait"), (61, 60, "bad")]
)
def test_a_wait_turns_amber_past_half_of_its_target_and_red_past_it(waited: int, goal: int | None, tone: str) -> None:
    assert CLOCK.read_tone(build_ticket(waited, goal)) == tone


def test_a_target_that_is_past_is_red_also_when_nobody_waits() -> None:
    late, early = ({**build_ticket(waited, 60), "waitingSince": None} for waited in (61, 59))
    assert (CLOCK.read_tone(late), CLOCK.read_tone(early)) == ("bad", "")


def test_the_next_target_is_the_reply_then_the_resolution_then_none() -> None:
    waiting, answered = build_ticket(5, 60), build_ticket(5, 60, is_answered=True)
    assert find_due(waiting) == NextTarget("reply", waiting["sla"]["firstResponseDue"])
    assert find_due(answered) == NextTarget("resolve", answered["sla"]["resolutionDue"])
    assert find_due(build_ticket(5, 60, status="resolved")) is None


@pytest.mark.parametrize(
    ("first", "resolution", "is_answered", "kind"),
    [
        (None, 30, False, "resolve"),
        (60, 30, False, "resolve"),
        (20, 30, False, "reply"),
        (20, 30, True, "resolve"),
        (20, None, True, None),
    ],
)
def test_of_the_targets_that_run_the_nearest_counts(
    first: int | None, resolution: int | None, is_answered: bool, kind: Literal["reply", "resolve"] | None
) -> None:
    now = CLOCK.now

    def after(minutes: int | None) -> str | None:
        return None if minutes is None else (now + timedelta(minutes=minutes)).isoformat()

    answered = now.isoformat() if is_answered else None
    sla = {"firstResponseDue": after(first), "resolutionDue": after(resolution), "firstRespondedAt": answered}
    dues = {"reply": sla["firstResponseDue"], "resolve": sla["resolutionDue"]}
    found = find_due({"sla": sla, "status": "assigned"})
    assert (found and (found.kind, found.due)) == (kind and (kind, dues[kind]))
