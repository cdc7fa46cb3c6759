"""Signing in and out: guessing, other sites, sessions and redirects."""

import asyncio
from contextlib import AsyncExitStack
from hashlib import sha256

import httpx
import pytest

from sapa.db.pool import Database
from sapa.people import actions, queries
from sapa.people.types import Role
from tests.conftest import Installation
from tests.console.own import open_own
from tests.console.people import PASSWORD, make_person, open_browser, read_token, sign_in
from tests.factories import Environments

WRONG = "The email or the password is wrong."


async def test_the_cookie_is_new_and_cannot_be_read_by_scripts_or_sent_from_elsewhere(
    installation: Installation, database: Database, company: Environments
) -> None:
    email = await make_person(database, company)
    async with open_browser(installation) as client:
        client.cookies.set("sapa_session", "planted", path="/console")
        cookie = (await sign_in(client, email)).headers["set-cookie"]
    assert "planted" not in cookie
    for word in ("httponly", "samesite=lax", "path=/console"):
        assert word in cookie.lower()
    async with open_browser(installation) as client:
        client.cookies.set("sapa_session", "planted", path="/console")
        assert (await client.get("/live")).status_code == 303


@pytest.mark.parametrize("headers", [{"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}])
async def test_a_form_of_another_site_does_not_sign_in(
    installation: Installation, database: Database, company: Environments, headers: dict[str, str]
) -> None:
    email = await make_person(database, company)
    async with open_browser(installation) as client:
        assert (await sign_in(client, email, **headers)).status_code == 403


async def test_guessing_is_slowed_down_also_where_many_guess_at_once(
    installation: Installation, database: Database, company: Environments
) -> None:
    email = await make_person(database, company)
    async with open_own(installation, peer="192.0.2.1") as client:
        form = {"token": await read_token(client, "/sign-in"), "email": email, "password": "wrong"}

        async def guess() -> int:
            while (response := await client.post("/sign-in", data=form)).status_code == 503:
                pass  # the machine is busy: no connection was free, and nothing was counted
            return response.status_code

        answers = await asyncio.gather(*(guess() for _ in range(25)))
        assert sorted(answers) == [401] * 10 + [429] * 15
        assert (await sign_in(client, email)).status_code == 429


async def test_a_caller_behind_a_proxy_that_adds_a_header_of_its_own_cannot_choose_the_network_that_is_counted(
    installation: Installation, database: Database, company: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    email = await make_person(database, company)
    limits = {"account and network": 100, "network": 2, "account": 100, "browser": 100}
    monkeypatch.setattr(actions, "MAX_FAILURES", limits)
    async with open_own(installation, peer="10.0.0.1", SAPA_TRUSTED_PROXIES="10.0.0.0/8") as client:
        form = {"token": await read_token(client, "/sign-in"), "email": email, "password": "wrong"}
        for number, status in enumerate((401, 401, 429)):
            hops = httpx.Headers([("x-forwarded-for", f"198.51.100.{number}"), ("x-forwarded-for", "203.0.113.90")])
            assert (await client.post("/sign-in", data=form, headers=hops)).status_code == status


async def test_networks_and_accounts_that_are_not_there_are_counted_and_the_right_password_forgives(
    installation: Installation, database: Database, company: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    existing, unknown = await make_person(database, company), f"nobody-{company.live}@toko.example"
    limits = {"account and network": 2, "network": 5, "account": 100, "browser": 2}
    monkeypatch.setattr(actions, "MAX_FAILURES", limits)
    async with open_own(installation, peer="192.0.2.2") as client:
        for password, status in (("wrong", 401), (PASSWORD, 303), ("wrong", 401), (PASSWORD, 303)):
            client.cookies.clear()
            assert (await sign_in(client, existing, password)).status_code == status
        client.cookies.clear()
        for status in (401, 401, 429):
            assert (await sign_in(client, unknown)).status_code == status
        assert (await sign_in(client, f"other-{unknown}")).status_code == 401
        assert (await sign_in(client, existing)).status_code == 429
    async with open_own(installation, peer="192.0.2.3") as client:
        assert (await sign_in(client, existing)).status_code == 303


async def test_a_browser_in_which_the_person_has_signed_in_gets_in_while_strangers_guess(
    installation: Installation, database: Database, company: Environments
) -> None:
    """Strangers from one network, then from many: both are refused, and the person is not."""
    email = await make_person(database, company)
    async with AsyncExitStack() as stack:

        async def browse(peer: str) -> httpx.AsyncClient:
            return await stack.enter_async_context(open_own(installation, peer=peer))

        own, stranger = await browse("192.0.2.20"), await browse("192.0.2.20")
        assert (await sign_in(own, email)).status_code == 303
        own.cookies.delete("sapa_session")
        for status in [401] * 10 + [429]:
            assert (await sign_in(stranger, email, "wrong")).status_code == status
        assert (await sign_in(own, email)).status_code == 303
        own.cookies.delete("sapa_session")
        async with database.transaction() as tx:
            for _ in range(actions.MAX_FAILURES["account"]):
                await queries.count_failure(tx, f"account {email}", actions.WINDOW_SECONDS)
        elsewhere = await browse("192.0.2.21")
        assert (await sign_in(elsewhere, email)).status_code == 429
        assert (await sign_in(own, email)).status_code == 303


async def test_a_known_browser_may_guess_ten_times_too_and_is_known_for_one_person_only(
    installation: Installation, database: Database, company: Environments
) -> None:
    email, other = await make_person(database, company), await make_person(database, company)
    async with open_own(installation, email, peer="192.0.2.22") as client:
        client.cookies.delete("sapa_session")
        for status in [401] * 10 + [429]:
            assert (await sign_in(client, email, "wrong")).status_code == status
        async with database.transaction() as tx:
            for _ in range(actions.MAX_FAILURES["account"]):
                await queries.count_failure(tx, f"account {other}", actions.WINDOW_SECONDS)
        assert (await sign_in(client, other)).status_code == 429


@pytest.mark.parametrize("ending", ["everywhere", "password"])
async def test_browsers_are_forgotten_with_all_sessions(
    installation: Installation, database: Database, company: Environments, ending: str
) -> None:
    email = await make_person(database, company)
    async with open_own(installation, email, peer="192.0.2.23") as client:
        if ending == "everywhere":
            await client.post("/sign-out", data={"token": await read_token(client), "everywhere": "1"})
        else:
            async with database.transaction() as tx:
                organisation = await actions.get_organisation(tx, company.live)
                member = await actions.get_member_by_email(tx, organisation, email)
                link = await actions.make_reset_link(tx, organisation, member.id)
            await actions.use_link(database, link, PASSWORD, None, actions.Origin("192.0.2.24", "another"))
            client.cookies.delete("sapa_session")
        async with database.transaction() as tx:
            for _ in range(actions.MAX_FAILURES["account"]):
                await queries.count_failure(tx, f"account {email}", actions.WINDOW_SECONDS)
        assert (await sign_in(client, email)).status_code == 429


async def test_the_browsers_that_were_used_last_are_known(database: Database, company: Environments) -> None:
    email = await make_person(database, company)
    for number in range(actions.MAX_BROWSERS + 3):
        await actions.sign_in(database, email, PASSWORD, actions.Origin("192.0.2.25", "test", f"browser {number}"))
    async with database.connection() as db:
        known = [
            found is not None and found.is_known_browser
            for number in range(actions.MAX_BROWSERS + 3)
            for found in [await queries.find_password(db, email, sha256(f"browser {number}".encode()).digest())]
        ]
    assert known == [False] * 3 + [True] * actions.MAX_BROWSERS


async def test_one_stranger_s_ipv6_addresses_count_together(
    installation: Installation, database: Database, company: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    email = await make_person(database, company)
    limits = {"account and network": 2, "network": 3, "account": 100, "browser": 2}
    monkeypatch.setattr(actions, "MAX_FAILURES", limits)
    network = f"2001:db8:{company.live % 65536:x}"
    attempts = [
        (f"{network}:1::1", email, 401),
        (f"{network}:1::2", email, 401),
        (f"{network}:1:ffff::3", email, 429),
        (f"{network}:1::4", f"another-{email}", 401),
        (f"{network}:1::5", f"third-{email}", 429),
        (f"{network}:2::1", email, 401),
    ]
    for peer, who, status in attempts:
        async with open_own(installation, peer=peer) as client:
            assert (await sign_in(client, who, "wrong")).status_code == status, peer


async def test_sign_in_does_not_reveal_who_has_an_account(
    installation: Installation, database: Database, company: Environments
) -> None:
    existing = await make_person(database, company)
    strange = ["nobody@toko.example", "\x7f", "x" * 5000, "ﷺ" * 300]
    async with open_own(installation, peer="192.0.2.5") as client:
        page = (await sign_in(client, existing, "wrong")).text.replace(existing, "…")
        assert WRONG in page
        for email in strange:
            response = await sign_in(client, email)
            assert response.status_code == 401, email
            assert WRONG in response.text
        assert (await sign_in(client, strange[0])).text.replace(strange[0], "…") == page


@pytest.mark.parametrize(
    ("wanted", "comes_to"),
    [
        ("/console/test/orders?status=active", "/console/test/orders?status=active"),
        ("https://evil.example/console/", "/console"),
        ("//evil.example/console/", "/console"),
        ("/console//evil.example", "/console"),
        ("/console/\\\\evil.example", "/console"),
        ("/\t/evil.example/console/", "/console"),
        ("javascript:alert(1)", "/console"),
        ("/consoled", "/console"),
    ],
)
async def test_one_comes_to_a_page_of_ours_and_to_no_other(
    installation: Installation, database: Database, company: Environments, wanted: str, comes_to: str
) -> None:
    email = await make_person(database, company)
    async with open_browser(installation) as client:
        page = await client.get("/sign-in", params={"next": wanted})
        assert "evil" not in page.text
        form = {"token": await read_token(client, "/sign-in"), "email": email, "password": PASSWORD, "next": wanted}
        assert (await client.post("/sign-in", data=form)).headers["location"] == comes_to


async def test_who_was_signed_out_meanwhile_comes_back_to_the_page(
    installation: Installation, database: Database, company: Environments
) -> None:
    email = await make_person(database, company)
    async with open_browser(installation) as client:
        asked = await client.get("/live/orders", params={"status": "active"})
        assert asked.headers["location"] == "/console/sign-in?next=/console/live/orders%3Fstatus%3Dactive"
        page = f"{installation.address}/console/live/webhooks/new"
        sent = await client.post("/live/webhooks", data={"url": "https://a.example"}, headers={"referer": page})
        assert sent.headers["location"] == "/console/sign-in?next=/console/live/webhooks/new&expired=1"
        odd = await client.post("/live/webhooks", headers={"referer": "http://[odd"})
        assert odd.headers["location"] == "/console/sign-in?next=&expired=1"
        back = await client.get(f"{installation.address}{sent.headers['location']}")
        assert 'value="/console/live/webhooks/new"' in back.text
        assert "Your session has ended. Sign in again; what you typed is kept." in back.text
        fresh = await client.get(f"{installation.address}{asked.headers['location']}")
        assert "Your session has ended" not in fresh.text
        assert (await sign_in(client, email)).headers["location"] == "/console"


@pytest.mark.parametrize(("role", "start"), [(Role.AGENT, "/console/live/inbox"), (Role.OWNER, "/console/live")])
async def test_each_role_starts_at_its_place(
    installation: Installation, database: Database, company: Environments, role: Role, start: str
) -> None:
    async with open_browser(installation, await make_person(database, company, role)) as client:
        assert (await client.get(f"{installation.address}/console")).headers["location"] == start


async def test_signing_out_ends_the_session_and_everywhere_ends_all(
    installation: Installation, database: Database, company: Environments
) -> None:
    email = await make_person(database, company)
    async with (
        open_browser(installation, email) as desk_one,
        open_browser(installation, email) as desk_two,
        open_browser(installation, email) as desk_three,
    ):
        cookies = dict(desk_one.cookies)
        await desk_one.post("/sign-out", data={"token": await read_token(desk_one)})
        desk_one.cookies.update(cookies)
        assert (await desk_one.get("/live")).status_code == 303
        assert (await desk_two.get("/live")).status_code == 200
        await desk_two.post("/sign-out", data={"token": await read_token(desk_two), "everywhere": "1"})
        assert (await desk_three.get("/live")).status_code == 303
