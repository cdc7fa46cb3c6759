"""Every statement of the product is run by Citus, each in a transaction that is rolled back."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from sapa.db.pool import Connection
from tests.citus.cluster import URL, ClusterServer
from tests.conftest import Installation
from tests.house.sharding_rules import ON_ONE_SERVER
from tests.house.statement_rules import Statements, listed_statements, name_statements

pytestmark = pytest.mark.skipif(URL is None, reason="no Citus cluster was given")

VALUES = {
    "bool": "true", "int2": "1", "int4": "1", "int8": "1", "float8": "1", "numeric": "1", "text": "x", "varchar": "x",
    "timestamptz": "2026-01-01", "date": "2026-01-01", "interval": "1 second", "json": "{}", "jsonb": "{}",
    "bytea": "x", "uuid": "00000000-0000-0000-0000-000000000000", "oid": "1", "char": "x", "inet": "127.0.0.1",
}  # fmt: skip
"""One of each type. A statement that wants another one fails for a reason that counts as having run."""

RAN = ("20", "22", "23", "P0")
"""Errors of values, of constraints and of our own functions."""
UNKNOWN = '"public.x"'
"""A table that a statement gets the name of."""


@pytest.fixture
async def owner(installation: Installation) -> AsyncIterator[Connection]:
    assert isinstance(installation.server, ClusterServer)
    connection = await asyncpg.connect(installation.server.owner_url, statement_cache_size=0)
    yield connection
    await connection.close()


async def list_refused(db: Connection, statements: Statements) -> dict[str, str]:
    found = {}
    for name, statement in statements.items():
        transaction = db.transaction()
        await transaction.start()
        try:
            await _run(db, statement.text)
        except asyncpg.PostgresError as error:
            if not (error.sqlstate or "").startswith(RAN) and UNKNOWN not in str(error):
                found[name] = f"{error.sqlstate} {error}"
        finally:
            await transaction.rollback()
            await db.execute("DEALLOCATE ALL")  # PREPARE is not rolled back
    return found


async def _run(db: Connection, text: str) -> None:
    parameters = (await db.prepare(text)).get_parameters()
    values = ", ".join("'{}'" if each.kind == "array" else f"'{VALUES[each.name]}'" for each in parameters)
    await db.execute(f"PREPARE tried AS {text}; EXECUTE tried{f'({values})' if values else ''}")


async def test_every_statement_runs(owner: Connection) -> None:
    found = await list_refused(owner, name_statements())
    assert {name: error for name, error in found.items() if name not in ON_ONE_SERVER} == {}
    assert found.keys() == ON_ONE_SERVER


async def test_every_combination_of_a_list_runs(owner: Connection) -> None:
    assert await list_refused(owner, dict(listed_statements())) == {}
