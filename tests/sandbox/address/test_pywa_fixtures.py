"""The callbacks that pywa is tested with, posted to our own callback address: all are accepted, and none fails.

SAPA_PYWA_SOURCE names a copy of pywa's repository, whose package does not include them.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sapa.db.pool import Database
from sapa.messaging.channels.whatsapp.callbacks import parse_callback
from tests.conftest import Installation
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.whatsapp_account import NUMBER_ID, OURS, WhatsAppHook, connect_whatsapp

SOURCE = os.environ.get("SAPA_PYWA_SOURCE", "")
BUSINESS_ACCOUNT = "3344"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not SOURCE, reason="SAPA_PYWA_SOURCE is not set to a copy of pywa's repository"),
]

Json = dict[str, Any]


def list_fixtures() -> dict[str, Json]:
    found: dict[str, Json] = {}
    for path in sorted((Path(SOURCE) / "tests" / "data" / "updates").glob("*.json")):
        found |= {f"{path.stem}/{name}": update for name, update in json.loads(path.read_text()).items()}
    return found


def readdress(update: Json) -> Json:
    """To the account of the test; nothing else changes."""
    for entry in update["entry"]:
        entry["id"] = BUSINESS_ACCOUNT
        for change in entry["changes"]:
            if "metadata" in change["value"]:
                change["value"]["metadata"] = {"display_phone_number": OURS, "phone_number_id": NUMBER_ID}
    return update


async def wait_until_processed(database: Database, company_id: int, hook: WhatsAppHook, count: int) -> list[Json]:
    async def look() -> list[Json] | None:
        async with database.connection() as db:
            rows = await db.fetch(
                "SELECT status, error, body FROM channel_callbacks WHERE company_id = $1 AND connection_id = $2",
                company_id,
                hook.connection_id,
            )
        done = [dict(row) for row in rows if row["status"] != "waiting"]
        return done if len(done) == count else None

    return await eventually(look, 120)


def test_something_is_read_from_every_fixture() -> None:
    account = {"phone_number_id": NUMBER_ID, "waba_id": BUSINESS_ACCOUNT}
    bodies = {name: json.dumps(readdress(update)).encode() for name, update in list_fixtures().items()}
    assert [name for name, body in bodies.items() if not parse_callback(account, body)] == []


async def test_every_fixture_is_accepted_and_processed(
    installation: Installation, database: Database, company: Environments
) -> None:
    hook = connect_whatsapp(installation, company.live)
    fixtures = {name: readdress(update) for name, update in list_fixtures().items()}
    assert len(fixtures) >= 60
    bodies = {name: json.dumps(update).encode() for name, update in fixtures.items()}
    for name, body in bodies.items():
        answer = await hook.post(body)
        assert answer.status_code == 200, (name, answer.text)
    done = await wait_until_processed(database, company.live, hook, len(set(bodies.values())))
    failed = {
        name for name, body in bodies.items() for row in done if row["body"] == body and row["status"] == "failed"
    }
    assert failed == set()
