"""The API as the console asks it: the same declared endpoints, in this process, with the rights of a role."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec

from sapa.access import actions as access
from sapa.access.types import Product, Scope
from sapa.db.pool import Connection
from sapa.http.allow_list import AllowList
from sapa.http.answers import Answer
from sapa.http.endpoints import Base, Call, Endpoint, Routes, RouteTable
from sapa.http.errand import Asked, Errand, Replayed
from sapa.http.errors import NotFound
from sapa.http.keys import Key
from sapa.kit import Kit
from sapa.people.types import Role

AGENT_SCOPES = frozenset(scope for scope in Scope if not scope.endswith(":DELETE"))
SCOPES = {Role.OWNER: frozenset(Scope), Role.DEVELOPER: frozenset(Scope), Role.AGENT: AGENT_SCOPES}
JSON = "application/json"


class Asker:
    """Made once for each process."""

    def __init__(self, kit: Kit, domains: Sequence[Routes]) -> None:
        self._kit = kit
        self._table = RouteTable(domains)

    async def ask(
        self,
        company_id: int,
        role: Role,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        body: object = None,
        base: Base = Base.CUSTOMER,
        upload: tuple[str, bytes] | None = None,
    ) -> Any:
        """What the endpoint answers, as plain values; raises what it refuses with."""
        route, values = self._table.match(f"{base}{path}"[1:].split("/"))
        endpoint = route.endpoints.get(method) if route else None
        if endpoint is None:
            raise NotFound
        async with self._kit.database.connection() as db:
            key = await self._build_key(db, company_id, role)
        endpoint.permit(key)
        media_type, content = upload or (JSON, msgspec.json.encode(body))
        given = {name: value for name, value in (query or {}).items() if value}
        arguments = endpoint.bind(values, urlencode(given).encode(), media_type, content)
        answer = await self._run(endpoint, key, arguments, f"{base}{path}")
        return msgspec.json.decode(answer.body) if answer.body else None

    async def _build_key(self, db: Connection, company_id: int, role: Role) -> Key:
        company = await access.get_company(db, company_id)
        return Key("console", company, SCOPES[role], frozenset(Product), AllowList([]), 0, None, None)

    async def _run(self, endpoint: Endpoint, key: Key, arguments: list[Any], path: str) -> Answer:
        if endpoint.leads_outside:
            asked = Asked("console", endpoint.method, path, endpoint.routes.base, "", "", [], {}, {}, b"")
            errand = Errand(self._kit, key, asked, endpoint.status, None)
            try:
                return await errand.build_answer(await endpoint.handler(errand, *arguments))
            except Replayed as replay:
                return replay.answer
        if not endpoint.writes:
            async with self._kit.database.connection() as db:
                return await endpoint.run(Call(db, key, self._kit), arguments)
        return await self._kit.database.transact(lambda tx: endpoint.run(Call(tx, key, self._kit), arguments))
