"""A company's own time on its pages. A test environment's clock may be ahead."""

from datetime import UTC, datetime, timedelta

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
