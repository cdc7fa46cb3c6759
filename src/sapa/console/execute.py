"""Calls the declared endpoints in this process, with the scopes of a role."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast
from urllib.parse import urlencode

import msgspec

from sapa.access import actions as access
from sapa.access.types import DATA_SCOPES, KeyProduct, Scope
from sapa.context import AppContext
from sapa.http import idempotency
from sapa.http.allow_list import AllowList
from sapa.http.endpoints import Base, Routes, RouteTable
from sapa.http.errors import NotFound, translate
from sapa.http.executor import AuditRecorder, Executor
from sapa.http.idempotency import IdempotencyClaim
from sapa.http.keys import Key
from sapa.http.outbound_call import OutboundCall, RequestInfo
from sapa.http.uploads import FileStream, UploadCall
from sapa.people.types import Role
from sapa.values.change_actor import ChangeActor
from sapa.values.company import Company
from sapa.values.sealing import SecretKeyMissing

AGENT_SCOPES = frozenset(scope for scope in DATA_SCOPES if not scope.endswith(":DELETE"))
SCOPES = {Role.OWNER: frozenset(Scope), Role.DEVELOPER: frozenset(Scope), Role.AGENT: AGENT_SCOPES}
JSON = "application/json"
CACHE_SECONDS = 1.0

Value = TypeVar("Value")


class InProcessApi:
    """One per process."""

    def __init__(self, context: AppContext, domains: Sequence[Routes]) -> None:
        self._context = context
        self._executor = Executor(context)
        self._table = RouteTable(domains)
        self._companies: dict[int, tuple[Company, float]] = {}
        """With the time until which it is cached: its settings can change."""
        self._cached: dict[tuple[str, int], tuple[Any, float]] = {}

    async def call(
        self,
        company_id: int,
        role: Role,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        body: object = None,
        base: Base = Base.CUSTOMER,
        upload: tuple[str, bytes] | None = None,
        audit: AuditRecorder | None = None,
        once: str | None = None,
        user: ChangeActor | None = None,
        file: FileStream | None = None,
    ) -> Any:
        """The endpoint's response as plain values; raises its errors.

        The audit entry is written in the transaction of the change, or after an outbound call. A change with the same
        `once` happens once.
        """
        route, values = self._table.match(f"{base}{path}"[1:].split("/"))
        endpoint = route.endpoints.get(method) if route else None
        if endpoint is None:
            raise NotFound
        key = await self._get_key(company_id, role, user)
        endpoint.check_rights(key)
        media_type, content = upload or (JSON, msgspec.json.encode(body))
        params = {name: value for name, value in (query or {}).items() if value}
        arguments = endpoint.bind(values, urlencode(params).encode(), media_type, content)
        info = _describe(method, path, base, content)
        claim = _build_claim(company_id, once, info)
        try:
            if endpoint.takes_file and file is not None:
                target, name = f"{method} {base}{path}", None if once is None else f"console-{once}"
                upload_call = UploadCall(self._context, key, file, endpoint.status, target, idempotency_key=name)
                response = await self._executor.run_upload(endpoint, upload_call, arguments)
            elif endpoint.is_outbound:
                call = OutboundCall(self._context, key, info, endpoint.status, claim)
                response = await self._executor.run_outbound(endpoint, call, arguments)
                if audit is not None:
                    await self._context.database.transact(audit)
            else:
                response = await self._executor.run(endpoint, key, arguments, claim, audit)
        except SecretKeyMissing as error:
            raise translate(error) or error from None
        return msgspec.json.decode(response.body) if response.body else None

    async def has_called(self, company_id: int, method: str, path: str, body: object, once: str | None) -> bool:
        """Whether a call of the customer API with this `once` has succeeded."""
        claim = _build_claim(company_id, once, _describe(method, path, Base.CUSTOMER, msgspec.json.encode(body)))
        if claim is None:
            return False
        async with self._context.database.connection() as db:
            return await idempotency.find(db, claim) is not None

    async def get_company(self, company_id: int) -> Company:
        company, until = self._companies.get(company_id, (None, 0.0))
        now = time.monotonic()
        if company is None or now >= until:
            async with self._context.database.connection() as db:
                company = await access.get_company(db, company_id)
            self._companies[company_id] = (company, now + CACHE_SECONDS)
        return company

    async def cache(self, name: str, company_id: int, seconds: float, read: Callable[[], Awaitable[Value]]) -> Value:
        """What is read once in so many seconds for all people of a company."""
        value, until = self._cached.get((name, company_id), (None, 0.0))
        now = time.monotonic()
        if value is None or now >= until:
            value = await read()
            self._cached[name, company_id] = (value, now + seconds)
        return cast(Value, value)

    async def _get_key(self, company_id: int, role: Role, user: ChangeActor | None) -> Key:
        company = await self.get_company(company_id)
        return Key("console", company, SCOPES[role], frozenset(KeyProduct), AllowList([]), 0, None, None, user=user)


def _describe(method: str, path: str, base: Base, content: bytes) -> RequestInfo:
    return RequestInfo("console", method, f"{base}{path}", base, "", "", [], {}, {}, content)


def _build_claim(company_id: int, once: str | None, info: RequestInfo) -> IdempotencyClaim | None:
    if once is None:
        return None
    return idempotency.build_claim(company_id, f"console-{once}", f"{info.method} {info.path}", info.body)
