"""A person's own page: name, password, sessions and notifications; and the team."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.console.browser_names import name_browser
from sapa.db.pool import Database
from sapa.people.types import Role
from tests.conftest import Installation
from tests.console.people import PASSWORD, make_person, open_browser, read_token, sign_in
from tests.factories import Environments
from tests.messaging.conftest import connect_messaging

NEW_PASSWORD = "teh melati hangat sore"
MOZILLA, WEBKIT = "Mozilla/5.0", "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.fixture
async def email(database: Database, company: Environments) -> str:
    return await make_person(database, company, Role.AGENT)


@pytest.fixture
async def agent(installation: Installation, email: str) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, email) as client:
        yield client


async def test_a_person_changes_their_name_and_signs_another_browser_out(
    installation: Installation, agent: httpx.AsyncClient, email: str
) -> None:
    token = await read_token(agent)
    assert (await agent.post("/profile", data={"token": token, "name": "Sari Dewi"})).status_code == 303
    async with open_browser(installation, email) as other:
        assert "Sari Dewi" in (await other.get("/live")).text
        page = (await agent.get("/profile")).text
        assert page.count("this browser") == 1
        for session in re.findall(r'name="session" value="([0-9a-f]{64})"', page):
            ended = await agent.post("/profile/sessions/end", data={"token": token, "session": session})
            assert ended.status_code == 303
        assert (await other.get("/live")).status_code == 303, "it has to sign in again"
    assert (await agent.get("/live")).status_code == 200
    unknown = await agent.post("/profile/sessions/end", data={"token": token, "session": "00"})
    assert unknown.status_code == 404


async def test_times_follow_the_time_zone_of_the_person(agent: httpx.AsyncClient) -> None:
    """The company's is Asia/Jakarta."""
    form = {"token": await read_token(agent), "name": "Sari"}
    assert " WIB</span>" in (await agent.get("/live")).text
    refused = await agent.post("/profile", data=form | {"timeZone": "Mars/Olympus"})
    assert refused.status_code == 400
    assert "must be an IANA time zone" in refused.text
    assert (await agent.post("/profile", data=form | {"timeZone": "Asia/Jayapura"})).status_code == 303
    assert " WIT</span>" in (await agent.get("/live")).text
    assert (await agent.post("/profile", data=form)).status_code == 303
    assert " WIB</span>" in (await agent.get("/live")).text


@pytest.mark.parametrize(
    ("says", "names"),
    [
        (f"{MOZILLA} (X11; Linux x86_64) {WEBKIT} Chrome/141.0.0.0 Safari/537.36", ("Chrome", "Linux")),
        (f"{MOZILLA} (Windows NT 10.0; Win64; x64) {WEBKIT} Chrome/141.0 Safari/537.36 Edg/141.0", ("Edge", "Windows")),
        (f"{MOZILLA} (Linux; Android 10; K) {WEBKIT} Chrome/141.0.0.0 Mobile Safari/537.36", ("Chrome", "Android")),
        (
            f"{MOZILLA} (Linux; Android 13; SM-A146P) {WEBKIT} SamsungBrowser/28.0 Chrome/130.0 Mobile Safari/537.36",
            ("Samsung Internet", "Android"),
        ),
        (f"{MOZILLA} (Macintosh; Intel Mac OS X 10_15_7) {WEBKIT} Version/18.0 Safari/605.1.15", ("Safari", "macOS")),
        (
            f"{MOZILLA} (iPhone; CPU iPhone OS 18_0 like Mac OS X) {WEBKIT} CriOS/141.0 Mobile/15E148 Safari/604.1",
            ("Chrome", "iPhone"),
        ),
        (f"{MOZILLA} (X11; Ubuntu; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0", ("Firefox", "Linux")),
        ("python-httpx/0.28.1", None),
        ("", None),
    ],
)
def test_browsers_are_named(says: str, names: tuple[str, str] | None) -> None:
    assert name_browser(says) == names


async def test_sessions_are_listed_by_browser_and_system(
    installation: Installation, agent: httpx.AsyncClient, email: str
) -> None:
    async with open_browser(installation) as other:
        other.headers["user-agent"] = f"{MOZILLA} (X11; Linux x86_64) {WEBKIT} Chrome/141.0.0.0 Safari/537.36"
        assert (await sign_in(other, email, PASSWORD)).status_code == 303
        assert "<strong>Chrome on Linux</strong>" in (await agent.get("/profile")).text


async def test_a_password_is_changed_with_the_present_one_and_ends_other_sessions(
    installation: Installation, agent: httpx.AsyncClient, email: str
) -> None:
    async with open_browser(installation, email) as other:
        form = {"token": await read_token(agent), "password": NEW_PASSWORD, "again": NEW_PASSWORD}
        wrong = await agent.post("/profile/password", data=form | {"present": "falsch"})
        assert (wrong.status_code, "The email or the password is wrong." in wrong.text) == (400, False)
        assert 'id="present-problem">this is not your current password' in wrong.text
        unlike = await agent.post("/profile/password", data=form | {"present": PASSWORD, "again": "x"})
        assert unlike.status_code == 400
        assert (await agent.post("/profile/password", data=form | {"present": PASSWORD})).status_code == 303
        assert (await agent.get("/live")).status_code == 200
        assert (await other.get("/live")).headers["location"].endswith("&expired=1")
        assert (await sign_in(other, email, PASSWORD)).status_code == 401
        assert (await sign_in(other, email, NEW_PASSWORD)).status_code == 303


async def test_a_member_takes_conversations_under_a_name_and_stops_again(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    key = str(api.headers["x-api-key"])
    async with open_browser(installation, await make_person(database, company)) as owner:
        page = (await owner.get("/live/settings/team")).text
        user = re.findall(r'name="userId" value="([0-9]+)"', page)[0]
        form = {"token": await read_token(owner), "userId": user, "agentName": "Sari"}
        assert (await owner.post("/live/settings/team/agents", data=form | {"active": "1"})).status_code == 303
        async with connect_messaging(installation, key) as messaging:
            (agent,) = (await messaging.get("/agents")).json()["data"]
            assert (agent["name"], agent["active"], agent["userId"]) == ("Sari", True, int(user))
            await owner.post("/live/settings/team/agents", data=form)
            (agent,) = (await messaging.get("/agents")).json()["data"]
            assert agent["active"] is False
    async with open_browser(installation, await make_person(database, company, Role.DEVELOPER)) as developer:
        page = (await developer.get("/live/settings/team")).text
        assert "/role" not in page, "only owners change roles"
