"""Settings of the inbox: lists that are added to, changed and deleted, and business hours."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation
from tests.console.people import make_person, open_browser, read_token
from tests.console.seats import Seat, read
from tests.factories import Environments
from tests.support.test_ratings import resolve_rated_ticket
from tests.support.ticket_steps import Desk

LISTS: dict[str, tuple[str, dict[str, object], str]] = {
    "labels": ("labels", {"name": "Retur", "color": "#864c00"}, "color"),
    "teams": ("teams", {"name": "Gudang", "autoAssign": "1"}, "autoAssign"),
    "saved-replies": ("saved-replies", {"shortcut": "resi", "text": "Halo {nama}"}, "text"),
    "macros": ("macros", {"name": "Foto", "actions.priority": "high", "reply": "Fotonya?"}, "actions"),
    "views": ("views", {"name": "Lewat", "filters.breached": "true", "filters.status": "open"}, "filters"),
    "targets": ("sla-policies", {"name": "Biasa", "firstResponseMinutes": "60", "position": "2"}, "position"),
}
STORED = {
    "labels": "#864c00", "teams": True, "saved-replies": "Halo {nama}", "macros": {"priority": "high"},
    "views": {"breached": True, "status": "open"}, "targets": 2,
}  # fmt: skip
WRONG = {
    "targets": {"firstResponseMinutes": "60", "resolutionMinutes": "10"},
    "saved-replies": {"text": "Halo {siapa}"},
    "macros": {"actions.priority": "", "reply": ""},
    "labels": {"name": "x" * 51},
}
SAID = {
    "targets": 'id="resolutionMinutes-problem">use at least as many minutes as for the first reply',
    "saved-replies": 'id="text-problem">{siapa} is not a placeholder.',
    "macros": 'id="reply-problem">choose an action, or write a note or a reply',
    "labels": 'id="name-problem">use at most 50 characters',
}


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


@pytest.mark.parametrize("page", LISTS)
async def test_a_list_is_added_to_changed_and_deleted(owner: httpx.AsyncClient, desk: Desk, page: str) -> None:
    path, form, field = LISTS[page]
    address, data = f"/test/settings/{page}", {"token": await read_token(owner), **form}
    assert (await owner.post(address, data=data)).status_code == 303
    (made,) = await desk.get(f"/{path}")
    assert made[field] == STORED[page]
    shown = (await owner.get(address)).text
    assert f"{address}/{made['id']}" in shown
    name = {"shortcut": "kirim"} if page == "saved-replies" else {"name": "Lain"}
    assert (await owner.post(f"{address}/{made['id']}", data={**data, **name})).status_code == 303
    (changed,) = await desk.get(f"/{path}")
    assert changed == {**made, **name, "updatedAt": changed["updatedAt"]}
    again = await owner.post(address, data={**data, **name})
    assert again.status_code == 409
    assert f'id="{next(iter(name))}-problem">choose another one' in again.text
    refused = await owner.post(f"{address}/{made['id']}", data={**data, **WRONG.get(page, name)})
    assert refused.status_code == (400 if page in WRONG else 303)
    assert SAID.get(page, "") in refused.text
    assert (await owner.post(f"{address}/{made['id']}/delete", data=data)).status_code == 303
    assert await desk.get(f"/{path}") == []


async def test_business_hours_and_holidays(owner: httpx.AsyncClient, desk: Desk) -> None:
    form = {
        "token": await read_token(owner), "timeZone": "Asia/Makassar", "monday-opens": ["08:00", "13:00"],
        "monday-closes": ["12:00", "17:00"], "holiday": ["2026-12-25", ""], "holidayName": ["Natal", ""],
    }  # fmt: skip
    assert (await owner.post("/test/settings/hours", data=form)).status_code == 303
    hours = await desk.get("/business-hours")
    assert [(one["day"], one["opens"], one["closes"]) for one in hours["weekly"]] == [
        ("monday", "08:00", "12:00"), ("monday", "13:00", "17:00"),
    ]  # fmt: skip
    assert (hours["timeZone"], hours["holidays"]) == ("Asia/Makassar", [{"date": "2026-12-25", "name": "Natal"}])
    page = (await owner.get("/test/settings/hours")).text
    assert re.findall(r'name="monday-opens" value="([^"]*)"', page) == ["08:00", "13:00", ""]
    refused = await owner.post("/test/settings/hours", data={**form, "monday-opens": ["25:00", "13:00"]})
    assert (refused.status_code, 'value="25:00"' in refused.text) == (400, True)
    wrong = await owner.post("/test/settings/hours", data={**form, "holiday": ["soon", ""]})
    assert wrong.status_code == 400
    nameless = await owner.post(
        "/test/settings/hours", data={**form, "holiday": ["2026-12-25", ""], "holidayName": ["Natal", "Libur"]}
    )
    assert 'id="holiday-problem">Enter a day<' in nameless.text
    assert nameless.text.count('name="holiday" value="" aria-invalid="true" aria-describedby="holiday-problem"') == 1


async def test_times_are_typed_as_people_write_them(owner: httpx.AsyncClient, desk: Desk) -> None:
    form = {"token": await read_token(owner), "monday-opens": ["8", "13.00"], "monday-closes": ["12.30", "17:00"]}
    assert (await owner.post("/test/settings/hours", data=form)).status_code == 303
    assert [(one["opens"], one["closes"]) for one in (await desk.get("/business-hours"))["weekly"]] == [
        ("08:00", "12:30"), ("13:00", "17:00"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("closes", "problem"),
    [
        (["", "17:00"], "enter when it opens and when it closes"),
        (["07:00", "17:00"], "on Monday, closing must be after 08:00"),
        (["14:00", "17:00"], "the hours from 13:00 on Monday overlap"),
        (["noon", "17:00"], "write times like 09:00"),
        (["25", "17:00"], "write times like 09:00"),
    ],
)
async def test_what_is_wrong_with_hours_is_shown_at_their_day(
    owner: httpx.AsyncClient, closes: list[str], problem: str
) -> None:
    form = {"token": await read_token(owner), "monday-opens": ["08:00", "13:00"], "monday-closes": closes}
    refused = await owner.post("/test/settings/hours", data={**form, "tuesday-opens": "", "tuesday-closes": ""})
    assert refused.status_code == 400
    monday = refused.text.partition("<legend>Monday</legend>")[2].partition("</fieldset>")[0]
    assert f'id="monday-problem">{problem}' in monday
    assert re.findall(r'name="([^"]*)"[^>]*aria-invalid="true" aria-describedby="monday-problem"', refused.text) == [
        "monday-opens"
    ]
    assert "Check the marked field." in refused.text


async def test_ratings_and_automatic_assignment_are_switched(owner: httpx.AsyncClient, desk: Desk) -> None:
    form = {
        "token": await read_token(owner), "reopenWindowHours": "24", "autoResolveHours": "72",
        "reopenAssignee": "queue", "askRating": "1",
    }  # fmt: skip
    assert (await owner.post("/test/settings/support", data=form)).status_code == 303
    stored = await desk.get("/support/settings")
    assert (stored["askRating"], stored["autoAssign"]) == (True, False)


async def test_what_a_customer_wrote_with_a_rating_is_read_beside_the_conversation(
    installation: Installation, seat: Seat, desk: Desk
) -> None:
    ticket, path = await resolve_rated_ticket(desk)
    assert "Rated by the customer" not in await seat.open(f"/{ticket['id']}")
    rated = await seat.browser.post(installation.address + path, data={"score": "4", "comment": "Cepat & ramah"})
    assert rated.status_code == 200, rated.text
    page = read(await seat.open(f"/{ticket['id']}"))
    assert "★ 4 / 5" in page
    assert "Cepat & ramah" in page
