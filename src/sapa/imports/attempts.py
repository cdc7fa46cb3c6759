"""One row at a time: what goes wrong with it is its own problem and undoes nothing else."""

from collections.abc import Awaitable, Callable

import asyncpg

from sapa.db.pool import Tx
from sapa.http.errors import ApiError, find_violation
from sapa.imports.types import Outcome, Problem, build_problem

Result = Outcome | Problem


async def attempt(tx: Tx, line: int, store: Callable[[], Awaitable[Outcome]]) -> Result:
    try:
        async with tx.transaction():
            return await store()
    except ApiError as error:
        return build_problem(line, error)
    except asyncpg.IntegrityConstraintViolationError as error:
        violation = find_violation(error)
        if violation is None:
            raise
        return build_problem(line, violation)
    except (asyncpg.DataError, asyncpg.ProgramLimitExceededError) as error:
        return Problem(line, "", f"cannot be stored: {error}")
