"""How many of our own functions stand between the server and the statement of a read: a reader follows them all."""

import sys
from typing import Any

import pytest
from asyncpg.connection import Connection

from sapa.customers import api as customers
from sapa.db.pool import Database
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.house.source_tree import SOURCE
from tests.http.probe import open_app

MAX_FRAMES = 7


async def test_a_read_reaches_its_statement_in_at_most_seven_frames(
    installation: Installation, database: Database, company: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths: list[list[str]] = []
    execute = Connection._execute  # type: ignore[attr-defined]

    def watch(connection: Any, query: str, *args: Any, **options: Any) -> Any:
        if "FROM customers" in query:
            paths.append(_list_own_frames())
        return execute(connection, query, *args, **options)

    key = await make_key(database, company.live)
    async with open_app(installation, [customers.routes]) as client:
        client.headers["x-api-key"] = key.raw
        created = await client.post("/customers", json={"email": "sari@example.com"})
        path = f"/customers/{created.json()['data']['id']}"
        monkeypatch.setattr(Connection, "_execute", watch)
        assert (await client.get(path)).status_code == 200
    (frames,) = paths
    assert len(frames) <= MAX_FRAMES, " → ".join(frames)


def _list_own_frames() -> list[str]:
    found = []
    frame = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_code.co_filename.startswith(str(SOURCE)):
            found.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return found[::-1]
