"""Invitations and password resets by mail: a real mail server accepts them, refuses them, or is away."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.people.types import Role
from tests.conftest import Installation
from tests.console.own import open_own
from tests.console.people import choose, follow, make_person, open_browser, read_token
from tests.factories import Environments
from tests.messaging.channels.mail_server import CertifiedServer, MailServer, open_mail_server

SENDER = "Sapa <no-reply@sapa.example>"
_LINK = re.compile(r"/console/link/([0-9A-Za-z_-]{43})")


@pytest.fixture
async def office() -> AsyncIterator[MailServer]:
    async with open_mail_server(MailServer()) as server:
        yield server


def by_mail(office: MailServer, login: str = "", scheme: str = "smtp") -> dict[str, str]:
    return {"SAPA_SMTP_URL": f"{scheme}://{login}{office.address}", "SAPA_MAIL_FROM": SENDER}


def find_link(text: str) -> str:
    found = _LINK.search(text)
    assert found is not None, text
    return found[1]


async def ask_for_link(client: httpx.AsyncClient, email: str, **headers: str) -> httpx.Response:
    form = {"token": await read_token(client, "/forgotten"), "email": email}
    return await client.post("/forgotten", data=form, headers=headers)


async def invite(owner: httpx.AsyncClient, company: Environments) -> tuple[str, httpx.Response]:
    email = f"invited-{company.live}@toko.example"
    form = {"token": await read_token(owner), "name": "Budi", "email": email, "role": "agent"}
    return email, await owner.post("/live/people", data=form)


async def test_an_invitation_goes_by_mail_and_its_link_stands_nowhere_else(
    installation: Installation, database: Database, company: Environments, office: MailServer
) -> None:
    owner = await make_person(database, company)
    async with open_own(installation, owner, **by_mail(office)) as client:
        await client.post("/language", data={"token": await read_token(client), "language": "id"})
        email, response = await invite(client, company)
        assert "Email sedang dikirim" in response.text
        assert not _LINK.search(response.text)
        [mail] = office.mails
        assert (mail["To"], mail["From"], mail["Auto-Submitted"]) == (email, SENDER, "auto-generated")
        assert office.envelopes == [("no-reply@sapa.example", [email])]
        assert company.name in mail["Subject"]
        text = mail.get_content()
        assert "Halo Budi" in text
    async with open_browser(installation) as budi:
        chosen = await choose(budi, find_link(text))
        assert chosen.status_code == 303
        assert (await budi.get("/live")).status_code == 200


@pytest.mark.parametrize("answers", [{"RCPT": "550 5.1.1 no such person"}, {"DATA": "drop"}])
async def test_a_refused_mail_shows_the_link_to_pass_on(
    installation: Installation, database: Database, company: Environments, office: MailServer, answers: dict[str, str]
) -> None:
    office.answers |= answers
    async with open_own(installation, await make_person(database, company), **by_mail(office)) as client:
        _, response = await invite(client, company)
        assert response.status_code == 200
        assert "The email could not be sent" in response.text
        link = find_link(response.text)
        assert (await follow(client, link)).status_code == 200


async def test_a_password_for_the_mail_server_goes_over_nothing_but_tls(
    installation: Installation,
    database: Database,
    company: Environments,
    office: MailServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner = await make_person(database, company)
    async with open_own(installation, owner, **by_mail(office, "sapa:p%40ss@")) as client:
        _, response = await invite(client, company)
        assert "The email could not be sent" in response.text
        assert "p@ss" not in response.text
    assert office.logins == []
    certified = CertifiedServer()
    certified.authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    for security, scheme in (("starttls", "smtp"), ("tls", "smtps")):
        async with (
            open_mail_server(certified, security) as server,
            open_own(installation, owner, **by_mail(server, "sapa:p%40ss@", scheme)) as client,
        ):
            person = (await client.get("/live/people")).text.rpartition("/people/")[2].partition("/")[0]
            response = await client.post(f"/live/people/{person}/link", data={"token": await read_token(client)})
            assert "The email is on its way" in response.text
    assert certified.logins == [("sapa", "p@ss")] * 2
    assert certified.encrypted == [True, True]


async def test_a_forgotten_password_gets_the_same_response_for_everybody(
    installation: Installation, database: Database, company: Environments, office: MailServer
) -> None:
    existing, unknown = await make_person(database, company, Role.AGENT), f"nobody-{company.live}@toko.example"
    async with open_browser(installation, existing) as before, open_own(installation, **by_mail(office)) as client:
        assert "/console/forgotten" in (await client.get("/sign-in")).text
        pages = {email: await ask_for_link(client, email) for email in (existing, unknown)}
        answers = {(page.status_code, page.text.replace(email, "…")) for email, page in pages.items()}
        assert len(answers) == 1
        [mail] = office.mails
        assert mail["To"] == existing
        link = find_link(mail.get_content())
        chosen = await choose(client, link, "teh poci manis")
        assert chosen.status_code == 303
        assert (await before.get("/live")).status_code == 303
        assert (await choose(client, link)).status_code == 404
    assert link not in installation.log.read_text()


async def test_password_resets_are_limited_for_existing_and_unknown_accounts(
    installation: Installation, database: Database, company: Environments, office: MailServer
) -> None:
    existing, unknown = await make_person(database, company), f"nobody-{company.live}@toko.example"
    async with open_own(installation, **by_mail(office)) as client:
        for email in (existing, unknown):
            asked = [(await ask_for_link(client, email)).status_code for _ in range(4)]
            assert asked == [200, 200, 200, 429]
        assert (await ask_for_link(client, "not an address")).status_code == 400
    assert len(office.mails) == 3


async def test_an_installation_without_mail_says_whom_to_ask(
    installation: Installation, database: Database, company: Environments
) -> None:
    existing = await make_person(database, company)
    async with open_browser(installation) as client:
        for page in (await client.get("/forgotten"), await ask_for_link(client, existing)):
            assert page.status_code == 200
            assert "send email. Ask an owner" in page.text


@pytest.mark.parametrize("headers", [{"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}])
async def test_another_site_cannot_ask_for_anybody(installation: Installation, headers: dict[str, Any]) -> None:
    async with open_browser(installation) as client:
        assert (await ask_for_link(client, "a@b.co", **headers)).status_code == 403
