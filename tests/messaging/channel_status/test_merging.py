"""Reports on an account in any order: the newest that mentions a value counts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.messaging.channel_status.merging import FIELDS, list_changes, merge_report, merge_warning
from sapa.messaging.channel_status.types import StoredStatus, StoredWarning
from sapa.messaging.channels.account_reports import AccountReport, AccountWarning

AT = datetime(2026, 3, 1, tzinfo=UTC)
EMPTY = StoredStatus("chan_1", "MSGAPP_CLOUD")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "quality": st.sampled_from([None, "GREEN", "RED"]),
    "messaging_limit": st.sampled_from([None, 0, 250]),
    "throughput": st.sampled_from([None, "STANDARD", "HIGH"]),
}


@given(reports=st.lists(st.fixed_dictionaries(VALUES), max_size=6), data=st.data())
def test_every_order_of_reports_gives_the_same_status(reports: list[dict[str, Any]], data: st.DataObject) -> None:
    made = [AccountReport(AT + timedelta(seconds=number), **values) for number, values in enumerate(reports)]
    shuffled = data.draw(st.permutations(made))
    status = EMPTY
    for report in [*shuffled, *shuffled]:
        status = merge_report(status, report)
    for name in FIELDS:
        mentioned = [getattr(report, name) for report in made if getattr(report, name) is not None]
        assert getattr(status, name) == (mentioned[-1] if mentioned else None)
    for report in made:
        assert list_changes(status, merge_report(status, report)) == []


def test_changes_have_public_names() -> None:
    after = merge_report(EMPTY, AccountReport(AT, quality="RED", messaging_limit=250))
    assert list_changes(EMPTY, after) == ["quality", "messagingLimit"]


STORED = StoredWarning("SPAM", "warning", "Stop.", AT, None, False)


@pytest.mark.parametrize(
    ("stored", "warning", "seconds", "changes"),
    [
        (None, AccountWarning("SPAM", "warning", "Stop."), 0, True),
        (None, AccountWarning("SPAM", "info", "over", is_over=True), 0, False),
        (STORED, AccountWarning("SPAM", "warning", "Stop."), 0, False),
        (STORED, AccountWarning("SPAM", "critical", "Stop now."), 60, True),
        (STORED, AccountWarning("SPAM", "info", "over", is_over=True), 60, True),
        (STORED, AccountWarning("SPAM", "info", "over", is_over=True), -60, False),
    ],
)
def test_a_later_warning_replaces_an_earlier_one(
    stored: StoredWarning | None, warning: AccountWarning, seconds: int, changes: bool
) -> None:
    assert (merge_warning(stored, warning, AT + timedelta(seconds=seconds)) is not None) == changes
