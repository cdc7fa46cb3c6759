"""A program outside: it has the address and the token of a sandbox account, and nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from msgspec import Struct

from sapa.db.pool import Database
from tests.conftest import TLS, Installation
from tests.factories import make_company, make_key
from tests.messaging.conftest import connect_messaging

Json = dict[str, Any]

CUSTOMER = "+628123456701"
HAPPY = "+12015550100"


class OutsideProgram(Struct, frozen=True):
    """A test environment, its API, and its accounts with the simulators by source."""

    company_id: int
    api: httpx.AsyncClient
    accounts: dict[str, Json]
    http: httpx.AsyncClient
    """Without any credentials."""

    @property
    def whatsapp(self) -> Json:
        return self.accounts["MSGAPP_CLOUD"]

    @property
    def number(self) -> str:
        return str(self.whatsapp["account"]["phone_number_id"])

    @property
    def business_account(self) -> str:
        return str(self.whatsapp["account"]["waba_id"])

    def sign(self, source: str = "MSGAPP_CLOUD") -> dict[str, str]:
        return {"authorization": f"Bearer {self.accounts[source]['credentials']['access_token']}"}

    async def call(self, method: str, path: str, source: str = "MSGAPP_CLOUD", **options: Any) -> httpx.Response:
        headers = {**self.sign(source), **options.pop("headers", {})}
        return await self.http.request(method, f"{self.accounts[source]['address']}/{path}", headers=headers, **options)

    async def send(self, body: Json, source: str = "MSGAPP_CLOUD") -> httpx.Response:
        """A message over WhatsApp; the envelope is added."""
        number = self.accounts[source]["account"]["phone_number_id"]
        whole = {"messaging_product": "whatsapp", "to": HAPPY, **body}
        return await self.call("POST", f"{number}/messages", source, json=whole)

    async def receive(self, sender: str = CUSTOMER, text: str = "Halo", **fields: Any) -> Json:
        """A customer writes."""
        body = {"source": "MSGAPP_CLOUD", "from": sender, "text": text, **fields}
        answer = await self.api.post("/sandbox/inbound", json={name: value for name, value in body.items() if value})
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()["data"]
        return found


@asynccontextmanager
async def open_program(
    installation: Installation, database: Database, rate_limit: int = 1_000_000
) -> AsyncIterator[OutsideProgram]:
    company = await make_company(database)
    key = await make_key(database, company.test, rate_limit=rate_limit)
    async with (
        connect_messaging(installation, key.raw) as api,
        httpx.AsyncClient(timeout=120, verify=TLS) as http,
    ):
        answer = await api.post("/sandbox/accounts")
        assert answer.status_code == 200, answer.text
        accounts = {account["source"]: account for account in answer.json()["data"]}
        yield OutsideProgram(company.test, api, accounts, http)
