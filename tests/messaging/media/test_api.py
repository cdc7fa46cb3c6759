"""Files from customers: fetched, stored, and visible to their company only."""

from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.sandbox.channels.files import FILES, MIME_TYPES
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_company, make_key
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.conversation_steps import get_message, simulate_inbound, wait_for_inbound
from tests.messaging.whatsapp_account import (
    WhatsAppHook,
    build_change,
    build_text,
    connect_whatsapp,
)

Json = dict[str, Any]

KINDS = [
    ("MSGAPP_CLOUD", "+628123456789", "image"),
    ("MSGAPP_CLOUD", "+628123456789", "document"),
    ("MSGAPP_COEX", "+628123456789", "audio"),
    ("SOCIAL_NETWORK", "24681357", "video"),
    ("PHOTO_SOCIAL", "17841400123", "image"),
    ("SHORT_VIDEO", "conversation-7", "image"),
    ("MAIL", "ayu@example.com", "document"),
]


async def get_file(client: httpx.AsyncClient, message: Json, status: str = "stored") -> Json:
    """The file's description, once it is fetched or failed."""
    path = message["mediaUrl"].partition("/messaging/v1")[2]

    async def look() -> Json | None:
        answer = await client.get(path)
        assert answer.status_code == 200, answer.text
        (found,) = answer.json()["data"]["files"]
        return found if found["status"] == status else None

    return await eventually(look)


def reach(installation: Installation, url: str) -> str:
    """The same path at this installation's port."""
    return installation.address + "/media/" + url.partition("/media/")[2]


@pytest.mark.parametrize(("source", "sender", "kind"), KINDS)
async def test_a_file_is_fetched_and_served(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments,
    source: str, sender: str, kind: str,
) -> None:  # fmt: skip
    await simulate_inbound(sandbox, source=source, media=kind, **{"from": sender})
    (row,) = await wait_for_inbound(database, company.test)
    file = await get_file(sandbox, await get_message(sandbox, row["id"]))
    assert (file["type"], file["mimeType"], file["size"]) == (kind, MIME_TYPES[kind], len(FILES[kind]))
    async with httpx.AsyncClient(verify=TLS, timeout=120) as browser:
        served = await browser.get(reach(installation, file["url"]))
        first = await browser.get(reach(installation, file["url"]), headers={"range": "bytes=0-1"})
    assert (served.status_code, served.content) == (200, FILES[kind])
    assert (first.status_code, first.content) == (206, FILES[kind][:2]), "as Safari asks before it plays"
    assert first.headers["content-range"] == f"bytes 0-1/{len(FILES[kind])}"
    assert first.headers["content-type"] == served.headers["content-type"]
    assert served.headers["x-content-type-options"] == "nosniff"
    is_shown = served.headers["content-disposition"].startswith("inline")
    assert is_shown == (kind != "document")


async def test_a_file_is_its_companys_only(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await simulate_inbound(sandbox, source="MSGAPP_CLOUD", media="image", **{"from": "+628123456789"})
    (row,) = await wait_for_inbound(database, company.test)
    message = await get_message(sandbox, row["id"])
    file = await get_file(sandbox, message)
    key = await make_key(database, (await make_company(database)).test)
    async with connect_messaging(installation, key.raw) as other:
        assert (await other.get(f"/messages/{row['id']}/media")).status_code == 404
    async with connect_messaging(installation, None) as nobody:
        assert (await nobody.get(f"/messages/{row['id']}/media")).status_code == 401
    link = reach(installation, file["url"])
    async with httpx.AsyncClient(verify=TLS, timeout=120) as browser:
        for changed in (
            link[:-2] + ("AA" if link[-2:] != "AA" else "BB"),
            link[:-10],
            link + "x",
            reach(installation, "/media/x"),
        ):
            assert (await browser.get(changed)).status_code == 404  # fmt: skip


async def test_private_addresses_are_not_fetched(
    installation: Installation, live: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """A page's callback names a URL: it is fetched through the guard, and the failure is visible."""
    hook: WhatsAppHook = connect_whatsapp(installation, company.live)
    image = {"mime_type": "image/png", "url": f"{installation.address}/healthz"}
    await hook.send_change(build_change(build_text("628123456789", type="image", image=image)))
    (row,) = await wait_for_inbound(database, company.live)
    message = await get_message(live, row["id"])
    assert message["mediaUrl"].endswith(f"/messages/{row['id']}/media")

    async def look() -> Json | None:
        (found,) = (await live.get(f"/messages/{row['id']}/media")).json()["data"]["files"]
        return found if found["error"] else None

    file = await eventually(look)
    assert (file["url"], file["size"]) == (None, None)
