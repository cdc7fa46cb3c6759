"""Stores one row in a savepoint: its error becomes a problem and undoes nothing else."""

from collections.abc import Awaitable, Callable

import asyncpg
from msgspec import Struct

from sapa.db.pool import Tx
from sapa.http.errors import translate
from sapa.imports.types import Outcome, Problem, build_problem
from sapa.values.company import Company

Result = Outcome | Problem


class StoreContext(Struct, frozen=True):
    """For whom rows are stored, and how."""

    company: Company
    import_id: str
    effects: bool
    """Whether records earn points, take stock and emit events; history does not."""
    is_foreign: bool
    """Whether the file comes from another system: then a customer is also found by e-mail address or phone number, and
    an archived order stays archived, of which the other system knows nothing."""


class StoreAlone(Exception):
    """Some rows need a transaction of their own; nothing was stored."""

    def __init__(self, lines: set[int]) -> None:
        self.lines = lines


async def attempt(tx: Tx, line: int, store: Callable[[], Awaitable[Outcome]]) -> Result:
    try:
        async with tx.transaction():
            return await store()
    except (asyncpg.DataError, asyncpg.ProgramLimitExceededError) as error:
        return Problem(line, "", f"cannot be stored: {error}")
    except Exception as error:
        refusal = translate(error)
        if refusal is None:
            raise
        return build_problem(line, refusal)
