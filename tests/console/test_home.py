"""Home: who waits longest, in whose eyes, and when a backup is too old."""

import pytest

from sapa.backups.types import BackupState
from sapa.db.pool import Database
from tests.conftest import Installation
from tests.console.people import make_person, open_browser
from tests.console.seats import Seat, read
from tests.factories import Environments
from tests.support.ticket_steps import Desk


async def test_home_names_who_waits_longest_and_agents_see_their_own(
    installation: Installation, database: Database, company: Environments, desk: Desk, seat: Seat
) -> None:
    """The menu counts what nobody has taken; home also what an agent keeps waiting."""
    other = await desk.create_agent("Budi")
    first = await desk.receive("Masih ada?", "+6281290000001")
    await desk.act(first, "assign", agentId=other)
    async with open_browser(installation, await make_person(database, company)) as owner:
        shown = read((await owner.get("/test")).text)
        assert "1 conversation waits for an answer Sandbox customer 0 min" in shown
    assert "Nothing needs you right now" in read((await seat.browser.get("/test")).text)
    await desk.receive("Halo", "+6281290000002")
    assert "1 conversation waits for an answer" in read((await seat.browser.get("/test")).text)


@pytest.mark.parametrize(("hours", "is_late"), [(None, True), (1, False), (47, False), (49, True)])
def test_a_backup_is_late_after_two_rounds(hours: int | None, is_late: bool) -> None:
    age = None if hours is None else hours * 3600.0
    assert BackupState(None, None, age, None).is_late(every_hours=24) is is_late
