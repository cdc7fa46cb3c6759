from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.analytics.report import build_duration
from sapa.analytics.window import SampleRange, build_window
from sapa.http.errors import Invalid

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def window_of(start_at: str | None, end_at: str | None) -> SampleRange:
    start, end = (None if text is None else instant(text) for text in (start_at, end_at))
    return build_window(start, end, NOW)


@pytest.mark.parametrize(
    ("start_at", "end_at", "start", "end"),
    [
        (None, None, "2026-03-01T12:00:00Z", "2026-03-31T12:00:00Z"),
        ("2026-03-30T00:00:00Z", None, "2026-03-30T00:00:00Z", "2026-03-31T12:00:00Z"),
        (None, "2026-02-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("2026-02-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("2026-03-29T01:59:59+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z"),
        ("2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"),
        (None, "0001-01-02T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-02T00:00:00Z"),
    ],
)  # fmt: skip
def test_windows(start_at: str | None, end_at: str | None, start: str, end: str) -> None:
    assert window_of(start_at, end_at) == SampleRange(instant(start), instant(end))


@pytest.mark.parametrize(
    ("start_at", "end_at"),
    [
        ("2026-02-02T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("2026-04-01T00:00:00Z", None),
        ("2026-02-01T00:00:00.000001Z", "2026-02-01T00:00:00Z"),
    ],
)
def test_a_window_does_not_begin_after_its_end(start_at: str, end_at: str | None) -> None:
    with pytest.raises(Invalid, match=r"^startAt: must not be after endAt") as refused:
        window_of(start_at, end_at)
    assert refused.value.details is not None
    assert [one.field for one in refused.value.details] == ["startAt"]


MIDNIGHT = datetime(2026, 2, 1, tzinfo=UTC)
NEAR = st.builds(
    lambda days, micros: MIDNIGHT + timedelta(days=days, microseconds=micros),
    st.integers(0, 4),
    st.sampled_from([-1, 0, 1]) | st.integers(0, 86_400_000_000),
)
ANY = st.datetimes(timezones=st.just(UTC))


@given(st.lists(NEAR | ANY, min_size=2, max_size=2).map(sorted), NEAR | ANY)
def test_every_instant_of_a_window_is_in_a_whole_day_or_beside_them(ends: list[datetime], at: datetime) -> None:
    """As in the statement: whole days by date, the rest by instant; no instant in both or in neither."""
    window = SampleRange(*ends)
    is_inside = window.start <= at <= window.end
    is_of_whole_day = window.first_day <= at.date() < window.past_day
    is_of_rest = is_inside and (at.date() < window.first_day or at.date() >= window.past_day)
    assert is_of_whole_day + is_of_rest == is_inside


FIRSTS = st.sampled_from([date(2026, month, 1) for month in range(1, 8)])


@given(st.lists(ANY | st.tuples(FIRSTS, st.integers(-2, 2)), min_size=2, max_size=2))
def test_every_whole_day_is_in_a_whole_month_or_beside_them(drawn: list[datetime | tuple[date, int]]) -> None:
    start, end = sorted(
        one if isinstance(one, datetime) else datetime.combine(one[0], time(), UTC) + timedelta(days=one[1])
        for one in drawn
    )
    window = SampleRange(start, end)
    first, past = window.months
    assert window.first_day <= first <= past <= window.past_day
    assert first == past or (first.day, past.day) == (1, 1)
    if (past.year, past.month) == (window.first_day.year, window.first_day.month):
        assert first == past or window.first_day.day == 1


@given(st.lists(NEAR, min_size=2, max_size=2).map(sorted))
def test_only_days_at_the_ends_are_not_whole(ends: list[datetime]) -> None:
    window = SampleRange(*ends)
    days = {date(2026, 2, 1) + timedelta(n) for n in range(-1, 6)}
    inside = {day for day in days if window.start.date() < day < window.end.date()}
    assert inside <= {day for day in days if window.first_day <= day < window.past_day}


SECOND = 1_000_000


@pytest.mark.parametrize(
    ("micros", "count", "shown"),
    [
        (0, 0, "00:00:00"),
        (0, 3, "00:00:00"),
        (499_999, 1, "00:00:00"),
        (500_000, 1, "00:00:01"),
        (SECOND, 2, "00:00:01"),
        (SECOND, 3, "00:00:00"),
        (59_500_000, 1, "00:01:00"),
        (3_599_499_999, 1, "00:59:59"),
        (210 * SECOND, 1, "00:03:30"),
        ((125 * 3600 + 3 * 60 + 9) * SECOND, 1, "125:03:09"),
        (1_000_000 * 3600 * SECOND, 1, "1000000:00:00"),
    ],
)
def test_durations(micros: int, count: int, shown: str) -> None:
    assert build_duration(micros, count) == shown
