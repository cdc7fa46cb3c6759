"""A company's calls to its simulators: all together count like those of one API key."""

import time

from msgspec import Struct

from sapa.access import actions as access
from sapa.access.types import CompanyNotFound
from sapa.db.pool import Database
from sapa.http.rate_limit import Quota, RateLimiter
from sapa.values.company import Company

CACHE_SECONDS = 5.0
MAX_CACHED = 10_000


class SandboxCaller(Struct, eq=False):
    """The programs that call a company's simulators."""

    id: str
    company: Company
    rate_limit: int
    loaded: float
    full_until: float = 0.0


class CompanyQuotas:
    """The limit is the highest of the company's API keys."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._limiter = RateLimiter(database)
        self._callers: dict[int, SandboxCaller] = {}

    async def count(self, company_id: int) -> Quota | None:
        """Counts a call; None if there is no such test environment."""
        caller = await self._find_caller(company_id)
        return None if caller is None else await self._limiter.count(caller)

    async def _find_caller(self, company_id: int) -> SandboxCaller | None:
        now, cached = time.monotonic(), self._callers.get(company_id)
        if cached is not None and now - cached.loaded < CACHE_SECONDS:
            return cached
        async with self._database.connection() as db:
            try:
                company = await access.get_company(db, company_id)
            except CompanyNotFound:
                return None
            if not company.is_test:
                return None
            limit = await access.get_highest_rate_limit(db, company_id)
        caller = SandboxCaller(f"sandbox_{company_id}", company, limit, now, cached.full_until if cached else 0.0)
        if len(self._callers) >= MAX_CACHED:
            self._callers.clear()
        self._callers[company_id] = caller
        return caller
