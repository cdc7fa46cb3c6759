"""A company's own time on its pages. A test environment's clock may be ahead."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from msgspec import Struct

from sapa.console.translations import translate


class CompanyTime(Struct, frozen=True):
    """Pages show the API's documents, so the instants are text."""

    ahead_seconds: float

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.ahead_seconds)

    def is_over(self, text: str) -> bool:
        return datetime.fromisoformat(text) <= self.now

    def read_real(self, text: str) -> str:
        """The instant in real time, which browsers count by."""
        return (datetime.fromisoformat(text) - timedelta(seconds=self.ahead_seconds)).isoformat()

    def say_span(self, language: str, text: str) -> str:
        """The distance to an instant, before or after, rounded."""
        minutes = int(abs((datetime.fromisoformat(text) - self.now).total_seconds()) // 60)
        if minutes >= 48 * 60:
            return translate(language, "{n} days", n=minutes // (24 * 60))
        if minutes >= 60:
            return translate(language, "{h} h {m} min", h=minutes // 60, m=minutes % 60)
        return translate(language, "{n} min", n=minutes)

    def read_tone(self, ticket: Mapping[str, Any]) -> str:
        """How urgent a ticket is: amber past half of a wait until its target, red past the target; empty before."""
        since, target = ticket["waitingSince"], find_due(ticket)
        if target is None:
            return ""
        if self.is_over(target.due):
            return "bad"
        if since is None:
            return ""
        start, end = datetime.fromisoformat(since), datetime.fromisoformat(target.due)
        return "wait" if self.now >= start + (end - start) / 2 else ""


class NextTarget(Struct, frozen=True):
    kind: Literal["reply", "resolve"]
    due: str


def find_due(ticket: Mapping[str, Any]) -> NextTarget | None:
    """The target that comes next, of those that run: the first response until it was given, and the resolution."""
    sla = ticket["sla"]
    if sla is None or ticket["status"] == "resolved":
        return None
    targets = [NextTarget("resolve", sla["resolutionDue"])] if sla["resolutionDue"] else []
    if sla["firstResponseDue"] and not sla["firstRespondedAt"]:
        targets.append(NextTarget("reply", sla["firstResponseDue"]))
    return min(targets, key=lambda target: datetime.fromisoformat(target.due), default=None)
