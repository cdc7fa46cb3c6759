"""Owners are told of a suspended endpoint: a real mail server accepts the mail, or refuses it at first."""

from collections.abc import AsyncIterator

import pytest

from sapa.db.due import add_interval
from sapa.db.pool import Database, open_database
from sapa.people.types import Role
from sapa.values.sealing import Vault
from sapa.webhooks.dispatch.settling import MAIL_SECONDS
from sapa.webhooks.endpoints import actions
from sapa.webhooks.notices.jobs import RETRY_SECONDS
from sapa.webhooks.types import Missed
from tests.conftest import Installation, start_installation, stop_installation
from tests.console.people import make_person
from tests.factories import make_company, make_endpoint
from tests.messaging.channels.mail_server import MailServer, open_mail_server
from tests.webhooks.station import Station, answer_with, happen, things, until

SENDER = "Sapa <no-reply@sapa.example>"


@pytest.fixture
async def office() -> AsyncIterator[MailServer]:
    async with open_mail_server(MailServer()) as server:
        yield server


@pytest.fixture
async def own(office: MailServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    running = start_installation(
        tmp_path_factory.mktemp("mailing") / "data",
        SAPA_WEBHOOK_ALLOW_INSECURE="1",
        SAPA_SMTP_URL=f"smtp://{office.address}",
        SAPA_MAIL_FROM=SENDER,
    )
    yield running
    assert stop_installation(running) == 0


@pytest.fixture
async def database(own: Installation) -> AsyncIterator[Database]:
    async with open_database(own.server.app_url, size=3) as opened:
        yield opened


async def suspend(database: Database, vault: Vault, company_id: int, id: str, start: int) -> None:
    await happen(database, company_id, things(10, start=start))

    async def is_suspended() -> bool:
        async with database.connection() as db:
            return (await actions.get(db, vault, company_id, id)).status == "suspended"

    await until(is_suspended)


async def age_notices(database: Database, company_id: int, column: str, seconds: int) -> None:
    async with database.connection() as db:
        await db.execute(
            f"UPDATE notices SET {column} = {add_interval(column, 'make_interval(secs => $2)')} WHERE company_id = $1",
            company_id,
            -seconds,
        )


async def test_every_owner_is_told_once_in_their_language(
    own: Installation, office: MailServer, database: Database, station: Station
) -> None:
    vault = Vault(own.server.secret_key)
    company = await make_company(database)
    owners = [await make_person(database, company), await make_person(database, company)]
    await make_person(database, company, Role.DEVELOPER)
    async with database.connection() as db:
        await db.execute("UPDATE users SET language = 'id' WHERE email = $1", owners[1])
    made = await make_endpoint(database, vault, company.test, station.url("hidden-path"))
    station.answer = answer_with(503)

    office.answers["RCPT"] = "451 4.3.0 try later"
    await suspend(database, vault, company.test, made.endpoint.id, 0)

    async def was_tried() -> bool:
        async with database.connection() as db:
            return bool(await db.fetchval("SELECT mail_tries = 1 FROM notices WHERE company_id = $1", company.test))

    await until(was_tried)
    office.answers["RCPT"] = "250 OK"
    await age_notices(database, company.test, "mail_due_at", RETRY_SECONDS)
    await until(lambda: len(office.mails) == 2)
    english, indonesian = sorted(office.mails, key=lambda mail: owners.index(mail["To"]))
    assert (english["To"], english["From"], english["Auto-Submitted"]) == (owners[0], SENDER, "auto-generated")
    assert english["Subject"].endswith("webhook suspended")
    text = english.get_content()
    assert "The last failure: answered 503" in text
    assert "resumes by itself" in text
    assert f"/console/test/webhooks/{made.endpoint.id}" in text
    assert station.address in text
    assert "hidden-path" not in text
    assert indonesian["Subject"].endswith("webhook ditangguhkan")

    async def suspend_again(start: int) -> None:
        async with database.transaction() as tx:
            await actions.resume(tx, vault, company.test, made.endpoint.id, Missed.SKIP)
        await suspend(database, vault, company.test, made.endpoint.id, start)

    await suspend_again(10)  # within the hour
    async with database.connection() as db:
        [due] = [
            row[0]
            for row in await db.fetch(
                "SELECT mail_due_at IS NOT NULL OR mail_tries > 0 FROM notices WHERE company_id = $1 ORDER BY id DESC"
                " LIMIT 1",
                company.test,
            )
        ]
    assert due is False
    assert MAIL_SECONDS == 3600
    assert len(office.mails) == 2
