"""One-time links: the first owner, invitations, forgotten passwords."""

import asyncio

import httpx
import pytest

from sapa.db.pool import Database
from sapa.people import actions
from sapa.people.types import Purpose, Role
from tests.conftest import Installation
from tests.console.people import PASSWORD, choose, find_token, follow, make_person, open_browser, read_token, sign_in
from tests.factories import Environments, make_company

CHOICE = {"password": PASSWORD, "again": PASSWORD}


OTHERS_CHOICE = "teh poci manis sekali"


async def invite(owner: httpx.AsyncClient, email: str, status: int = 200) -> str:
    """The secret of the link that the owner is shown."""
    form = {"token": await read_token(owner), "name": "Budi", "email": email, "role": "owner"}
    return find_link(await owner.post("/live/people", data=form), status)


async def renew(owner: httpx.AsyncClient, email: str, status: int = 200) -> str:
    id = await find_member(owner, email)
    return find_link(await owner.post(f"/live/people/{id}/link", data={"token": await read_token(owner)}), status)


async def find_member(owner: httpx.AsyncClient, email: str) -> str:
    page = (await owner.get("/live/people")).text
    return page[page.index(email) :].partition("/people/")[2].partition("/")[0]


def find_link(response: httpx.Response, status: int) -> str:
    assert response.status_code == status, response.text
    return response.text.partition("/console/link/")[2].partition("<")[0]


async def make_setup_link(database: Database, company: Environments) -> str:
    async with database.transaction() as tx:
        return await actions.make_setup_link(tx, company.live)


async def test_the_first_owner_comes_in_by_the_link_once(
    installation: Installation, database: Database, company: Environments
) -> None:
    link = await make_setup_link(database, company)
    newcomer = {"email": f"first-{company.live}@toko.example", "name": "Sari", **CHOICE}
    async with open_browser(installation) as client:
        page = await follow(client, link)
        assert company.name in page.text
        assert link not in str(page.url) + page.text
        form = newcomer | {"token": find_token(page.text)}
        answers = await asyncio.gather(*(client.post("/link", data=form) for _ in range(5)))
        assert sorted(response.status_code for response in answers) == [303, 404, 404, 404, 404]
        assert (await client.get("/live/people")).status_code == 200
        assert (await follow(client, link)).status_code == 404


@pytest.mark.parametrize(
    ("choice", "complaint"),
    [
        ({"password": "short", "again": "short"}, "use 12 to 256 characters"),
        ({"password": PASSWORD, "again": "another password"}, "the passwords don&#39;t match"),
        ({"password": "123456789012", "again": "123456789012"}, "is a common password"),
        ({"password": "aaaaaaaaaaaa", "again": "aaaaaaaaaaaa"}, "repeats itself"),
        ({"password": "password123456", "again": "password123456"}, "is a common password"),
    ],
)
async def test_a_password_that_will_not_do_leaves_the_link_usable(
    installation: Installation, database: Database, company: Environments, choice: dict[str, str], complaint: str
) -> None:
    link = await make_setup_link(database, company)
    newcomer = {"email": f"first-{company.live}@toko.example", "name": "Sari"}
    async with open_browser(installation) as client:
        response = await choose(client, link, **newcomer, **choice)
        assert response.status_code == 400
        assert complaint in response.text
        wrong = "again" if choice["again"] != choice["password"] else "password"
        assert f'name="{wrong}" value="" aria-invalid="true"' in response.text
        assert f'value="{newcomer["email"]}"' in response.text
        assert (await choose(client, link, **newcomer)).status_code == 303


async def test_an_invited_agent_chooses_a_password_and_a_new_link_ends_the_old_sessions(
    installation: Installation, database: Database, company: Environments
) -> None:
    email = await make_person(database, company)
    async with open_browser(installation, email) as owner:
        token = await read_token(owner)
        invited = f"agent-{company.live}@toko.example"
        form = {"token": token, "name": "Budi", "email": invited, "role": "agent"}
        page = (await owner.post("/live/people", data=form)).text
        link = page.partition("/console/link/")[2].partition("<")[0]
        assert (await owner.post("/live/people", data=form)).status_code == 409
        async with open_browser(installation) as agent:
            assert (await choose(agent, link)).status_code == 303
            assert (await agent.get("/live")).status_code == 200
            member = (await owner.get("/live/people")).text.rpartition("/people/")[0].rpartition("/people/")[2]
            page = (await owner.post(f"/live/people/{member.partition('/')[0]}/link", data={"token": token})).text
            link = page.partition("/console/link/")[2].partition("<")[0]
            async with open_browser(installation) as elsewhere:
                assert (await choose(elsewhere, link)).status_code == 303
            assert (await agent.get("/live")).status_code == 303


async def test_the_last_owner_stays(installation: Installation, database: Database, company: Environments) -> None:
    email = await make_person(database, company)
    async with open_browser(installation, email) as owner:
        token = await read_token(owner)
        id = (await owner.get("/live/people")).text.partition("/people/")[2].partition("/")[0]
        for action, form in (("role", {"role": "agent"}), ("remove", {})):
            response = await owner.post(f"/live/people/{id}/{action}", data={"token": token, **form})
            assert response.status_code == 409
        await make_person(database, company, Role.OWNER)
        response = await owner.post(f"/live/people/{id}/role", data={"token": token, "role": "agent"})
        assert response.status_code == 303
        assert (await owner.get("/live/keys")).status_code == 403


async def test_a_company_cannot_choose_a_password_that_opens_another(
    installation: Installation, database: Database, company: Environments
) -> None:
    other = await make_company(database)
    victim, owner_email = await make_person(database, other), await make_person(database, company)
    async with open_browser(installation, owner_email) as owner, open_browser(installation) as guest:
        for link in (await invite(owner, victim), await renew(owner, victim)):
            assert "another company" in (await follow(guest, link)).text
            assert (await choose(guest, link, OTHERS_CHOICE)).status_code == 401
            assert (await guest.get("/live")).status_code == 303
        async with open_browser(installation, victim) as still_there:
            page = (await still_there.get("/live/people")).text
            assert other.name in page
            assert company.name not in page
            assert (await choose(guest, link)).status_code == 303
            assert company.name in (await guest.get("/live/people")).text
            await check_moving(still_there, company)
        refused = await owner.post(
            f"/live/people/{await find_member(owner, victim)}/link", data={"token": await read_token(owner)}
        )
        assert refused.status_code == 409
        assert "/console/link/" not in refused.text
        async with open_browser(installation) as first:
            form = {"email": victim.upper(), "name": "Sari"}
            link = await make_setup_link(database, await make_company(database))
            assert (await choose(first, link, OTHERS_CHOICE, **form)).status_code == 401
            assert (await choose(first, link, **form)).status_code == 303


async def test_a_link_for_a_new_password_ends_with_the_password_that_it_was_made_for(
    installation: Installation, database: Database, company: Environments
) -> None:
    email = await make_person(database, company, Role.AGENT)
    async with (
        open_browser(installation, await make_person(database, company)) as owner,
        open_browser(installation, email) as member,
        open_browser(installation) as finder,
    ):
        link = await renew(owner, email)
        assert (await follow(finder, link)).status_code == 200
        chosen = {"present": PASSWORD, "password": OTHERS_CHOICE, "again": OTHERS_CHOICE}
        form = {"token": await read_token(member), **chosen}
        assert (await member.post("/profile/password", data=form)).status_code == 303
        assert (await follow(finder, link)).status_code == 404
        assert (await member.get("/live")).status_code == 200


async def check_moving(browser: httpx.AsyncClient, company: Environments) -> None:
    """To the person's other company, and to no one else's."""
    form = {"token": await read_token(browser)}
    page = (await browser.get("/companies")).text
    there = page[page.index(f"<strong>{company.name}") :].partition('name="company" value="')[2].partition('"')[0]
    for wrong in ("1", "0", "²", "x", "999999999"):
        assert (await browser.post("/companies", data={**form, "company": wrong})).status_code == 404
    assert (await browser.post("/companies", data={**form, "company": there})).status_code == 303
    assert company.name in (await browser.get("/live/people")).text


async def test_whom_two_companies_invite_belongs_to_the_one_whose_link_is_used(
    installation: Installation, database: Database, company: Environments
) -> None:
    other, email = await make_company(database), f"both-{company.live}@toko.example"
    async with (
        open_browser(installation, await make_person(database, company)) as owner,
        open_browser(installation, await make_person(database, other)) as stranger,
        open_browser(installation) as thief,
    ):
        ours, theirs = await invite(owner, email), await invite(stranger, email)
        assert (await choose(thief, theirs, OTHERS_CHOICE)).status_code == 303
        thief.cookies.clear()
        assert (await sign_in(thief, email, OTHERS_CHOICE)).status_code == 303
        for page in ("/live/people", "/companies"):
            assert other.name in (shown := (await thief.get(page)).text)
            assert company.name not in shown
        assert 'autocomplete="current-password"' in (await follow(thief, ours)).text
        assert "has not signed in yet" in (await owner.get("/live/people")).text


async def test_the_link_of_somebody_who_was_taken_out_or_of_yesterday_opens_nothing(
    installation: Installation, database: Database, company: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    email = await make_person(database, company)
    async with open_browser(installation, email) as owner, open_browser(installation) as guest:
        link = await invite(owner, f"gone-{company.live}@toko.example")
        page = await follow(guest, link)
        member = await find_member(owner, f"gone-{company.live}@toko.example")
        response = await owner.post(f"/live/people/{member}/remove", data={"token": await read_token(owner)})
        assert response.status_code == 303
        form = {"token": find_token(page.text), **CHOICE}
        assert (await guest.post("/link", data=form)).status_code == 404
        monkeypatch.setitem(actions.LINK_SECONDS, Purpose.RESET, -1)
        async with database.transaction() as tx:
            organisation = await actions.get_organisation(tx, company.live)
            me = await actions.get_member_by_email(tx, organisation, email)
            late = await actions.make_reset_link(tx, organisation, me.id)
        assert (await choose(guest, late)).status_code == 404
        assert (await owner.get("/live")).status_code == 200
