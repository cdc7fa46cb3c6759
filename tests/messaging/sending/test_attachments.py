"""Files that we hold go with a mail; everything else stays a link."""

import httpx
import pytest

from sapa.access.actions import get_company
from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.messaging.channels.files import MailAttachment
from sapa.messaging.channels.interface import Identity, Media, OutgoingMessage, SendRefusal, Source
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.media.actions import build_address
from sapa.messaging.media.links import MediaLink, build_link
from sapa.messaging.sending import attachments
from sapa.messaging.sending.attachments import attach_files
from sapa.sandbox.channels.files import FILES
from sapa.values.company import Company
from tests.factories import Environments, make_company
from tests.messaging.conversation_steps import simulate_inbound, wait_for_inbound

ALWAYS = 4_102_444_800
PDF = MailAttachment("sandbox.pdf", "application/pdf", FILES["document"])


@pytest.fixture
async def message_id(sandbox: httpx.AsyncClient, database: Database, company: Environments) -> str:
    """A received mail with a file."""
    await simulate_inbound(sandbox, source="MAIL", media="document", **{"from": "ayu@example.com"})
    (row,) = await wait_for_inbound(database, company.test)
    id: str = row["id"]
    return id


async def find_company(database: Database, company_id: int) -> Company:
    async with database.connection() as db:
        return await get_company(db, company_id)


async def attach(context: AppContext, database: Database, company_id: int, message: OutgoingMessage) -> OutgoingMessage:
    """As it goes to the mail channel of this company."""
    company = await find_company(database, company_id)
    async with database.connection() as db:
        mail = await get_environment(company).accounts.find_by_source(context, db, company, Source.MAIL)
    assert mail is not None
    attached = await attach_files(context, mail, message)
    assert not isinstance(attached, SendRefusal)
    return attached


def build_outgoing(url: str, filename: str | None = None) -> OutgoingMessage:
    return OutgoingMessage("ref", Identity("email", "budi@example.com"), Media("document", url, "Nota", filename))


async def test_a_file_that_we_hold_is_attached(
    context: AppContext, database: Database, company: Environments, message_id: str
) -> None:
    link = build_link(context, MediaLink(company.test, message_id, 0, ALWAYS))
    for url in (build_address(context, message_id), link):
        attached = await attach(context, database, company.test, build_outgoing(url))
        assert attached.attachments == [PDF]
    named = await attach(context, database, company.test, build_outgoing(link, "../nota.pdf"))
    assert named.attachments[0].filename == "nota.pdf"


async def test_a_large_file_stays_a_link_that_works_for_long(
    context: AppContext, database: Database, company: Environments, message_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "MAX_ATTACHED_BYTES", len(FILES["document"]) - 1)
    linked = await attach(context, database, company.test, build_outgoing(build_address(context, message_id)))
    assert isinstance(linked.content, Media)
    assert linked.attachments == ()
    assert linked.content.url.startswith(f"{context.settings.server.address}/media/")


async def test_a_media_url_stays_a_link(
    context: AppContext, database: Database, company: Environments, message_id: str
) -> None:
    other = await make_company(database)
    expired = build_link(context, MediaLink(company.test, message_id, 0, 1))
    foreign = build_link(context, MediaLink(company.test, message_id, 0, ALWAYS))
    cases = [
        (company.test, "https://shop.example/nota.pdf"),
        (company.test, f"https://shop.example/messages/{message_id}/media"),
        (company.test, f"{context.settings.server.address}/media/forged"),
        (company.test, expired),
        (other.test, foreign),
        (other.test, build_address(context, message_id)),
    ]
    for company_id, url in cases:
        message = build_outgoing(url)
        assert await attach(context, database, company_id, message) == message
