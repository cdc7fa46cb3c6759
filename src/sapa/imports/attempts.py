"""Stores one row in a savepoint: its error becomes a problem and undoes nothing else."""

from collections.abc import Awaitable, Callable

import asyncpg

from sapa.db.pool import Tx
from sapa.http.errors import translate
from sapa.imports.types import Outcome, Problem, build_problem

Result = Outcome | Problem


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
