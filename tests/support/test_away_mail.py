"""People who are away are told by mail that customers wait: a real mail server accepts the mail."""

import re

import httpx

from sapa.db.pool import Database
from sapa.people.types import Role
from sapa.settings import read_settings
from sapa.startup import build_context
from sapa.support.away_mail.jobs import mail_waiting
from tests.conftest import TLS, Installation, connect
from tests.console.people import make_person, open_browser, read_token
from tests.factories import Environments, make_key, make_order
from tests.http.wire import eventually
from tests.messaging.channels.mail_server import MailServer, open_mail_server
from tests.messaging.conftest import connect_messaging

SEEN_LONG_AGO = """
    UPDATE memberships SET seen_at = now() - interval '11 minutes'
     WHERE organisation_id = (SELECT organisation_id FROM companies WHERE company_id = $1)"""


async def write_to_the_chat(installation: Installation, owner: httpx.AsyncClient) -> None:
    """A visitor of the shop's site, on the live web chat."""
    made = await owner.post("/live/channels/WIDGET", data={"token": await read_token(owner), "title": "Toko"})
    found = re.search(r"data-key=&#34;([^&]+)&#34;", made.text)
    assert found is not None, made.text
    async with httpx.AsyncClient(base_url=f"{installation.address}/widget/v1", verify=TLS, timeout=60) as page:
        page.headers["x-widget-key"] = found[1]
        session = (await page.post("/sessions", json={})).json()["data"]
        message = {"id": "p_0123456789abcdef", "text": "Halo, masih buka?"}
        answer = await page.post("/messages", json=message, headers={"authorization": f"Bearer {session['token']}"})
        assert answer.status_code == 200, answer.text


async def leave_a_tab_open(installation: Installation, email: str) -> None:
    """Its scripts go on asking, and nobody is there."""
    async with open_browser(installation, email) as tab:
        for path in ("/live/alerts", "/live/inbox/events", "/live/inbox?part=live"):
            assert (await tab.get(path)).status_code in {200, 303}


async def test_who_is_away_and_wants_it_is_mailed_once(
    installation: Installation, database: Database, company: Environments
) -> None:
    away = await make_person(database, company, Role.AGENT)
    quiet = await make_person(database, company)
    async with open_browser(installation, quiet) as owner, open_browser(installation, away) as agent:
        await agent.get("/live")
        form = {"token": await read_token(owner), "kind": "unassigned"}
        assert (await owner.post("/profile/alerts", data=form)).status_code == 303
        kinds = {"kind": ["unassigned", "order", "shipment"], "mail": "1"}
        form = {"token": await read_token(agent)}
        assert (await agent.post("/profile/alerts", data=form | kinds)).status_code == 303
        assert (await agent.post("/sign-out", data=form)).status_code == 303
        await write_to_the_chat(installation, owner)
    key = (await make_key(database, company.live)).raw
    async with connect(installation, key) as api, connect_messaging(installation, key) as messaging:
        order = await make_order(api)
        await api.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})
        await make_order(api)

        async def is_waiting() -> bool:
            return bool((await messaging.get("/tickets", params={"waiting": "true"})).json()["data"])

        await eventually(is_waiting)
    async with open_mail_server(MailServer()) as office:
        variables = {
            "SAPA_SECRET_KEY": installation.server.secret_key,
            "SAPA_SMTP_URL": f"smtp://{office.address}",
            "SAPA_MAIL_FROM": "Sapa <no-reply@sapa.example>",
        }
        context = build_context(read_settings(variables), database)
        await mail_waiting(context)
        assert [mail for mail in office.mails if mail["To"] in {away, quiet}] == [], "they were there a moment ago"
        async with database.connection() as db:
            await db.execute(SEEN_LONG_AGO, company.live)
        await leave_a_tab_open(installation, away)
        await mail_waiting(context)
        await mail_waiting(context)
        (mail,) = [mail for mail in office.mails if mail["To"] in {away, quiet}]
        assert mail["To"] == away
        assert mail["Subject"].endswith("2 waiting for you")
        body = mail.get_content()
        assert "1 customer waits in a conversation that nobody has taken" in body
        assert "1 order was paid and waits to be shipped" in body
