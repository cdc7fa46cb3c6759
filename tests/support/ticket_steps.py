"""A support desk over HTTP: customers write, agents answer."""

import time
from typing import Any

import httpx
from msgspec import Struct, field

from tests.http.wire import eventually
from tests.messaging.conversation_steps import advance, simulate_inbound

Json = dict[str, Any]

NUMBER = "+628123456789"
WIDEST: dict[str, str | int] = {"startAt": "2000-01-01T00:00:00Z", "endAt": "2100-01-01T00:00:00Z", "limit": 100}


class Desk(Struct, frozen=True):
    """The messaging API with a test key."""

    client: httpx.AsyncClient
    began: float = field(default_factory=time.monotonic)

    async def get(self, path: str, **params: Any) -> Any:
        answer = await self.client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    async def post(self, path: str, status: int = 200, **body: Any) -> Any:
        answer = await self.client.post(path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()["data"] if status < 300 else answer.json()["error"]

    async def create_agent(self, name: str = "Sari", type: str = "human", **fields: Any) -> int:
        created = await self.post("/agents", 201, name=name, type=type, **fields)
        return int(created["id"])

    async def receive(self, text: str = "Masih ada?", sender: str = NUMBER, source: str = "MSGAPP_CLOUD") -> Json:
        """A customer writes; returns the ticket once it has the message."""
        inbound = await simulate_inbound(self.client, source=source, text=text, **{"from": sender})
        return await eventually(lambda: self.find_ticket_of(inbound["messageId"]))

    async def find_ticket_of(self, provider_id: str) -> Json | None:
        for ticket in await self.get("/tickets", sort="lastMessageAt:desc"):
            detail: Json = await self.get(f"/tickets/{ticket['id']}")
            if provider_id in [message["messageId"] for message in detail["messages"]]:
                return detail
        return None

    async def reply(self, ticket: Json, agent_id: int, body: str = "Masih.", status: int = 200, **more: Any) -> Json:
        message: Json = await self.post(f"/tickets/{ticket['id']}/replies", status, agentId=agent_id, body=body, **more)
        return message

    async def act(self, ticket: Json, verb: str, status: int = 200, **body: Any) -> Json:
        done: Json = await self.post(f"/tickets/{ticket['id']}/{verb}", status, **body)
        return done

    async def look(self, ticket: Json) -> Json:
        seen: Json = await self.get(f"/tickets/{ticket['id']}")
        return seen

    async def rate(self, agent_id: int, score: int, sender: str = NUMBER) -> Json:
        """The customer rates a ticket that the agent answered and resolved."""
        await self.client.put("/support/settings", json={"askRating": True})
        ticket = await self.receive(sender=sender)
        await self.reply(ticket, agent_id)
        await self.act(ticket, "resolve", agentId=agent_id)
        asked = (await self.get("/ratings", ticketId=ticket["id"]))[0]
        rated = await self.client.put(f"/ratings/{asked['id']}", json={"score": score, "comment": f"Nilai {score}"})
        assert rated.status_code == 200, rated.text
        return ticket

    async def list_timeline(self, customer_id: str) -> list[str]:
        """The ticket entries of the customer's timeline, oldest first."""
        path = self.client.base_url.join(f"/customer/v1/loyalty/customers/{customer_id}/timeline")
        return [entry["type"] for entry in reversed(await self.get(str(path), category="support"))]

    async def pass_time(self, seconds: int) -> None:
        await advance(self.client, seconds)

    async def measured(self, agent_id: int) -> dict[str, list[Json]]:
        """The agent's samples by metric, oldest first."""
        found: dict[str, list[Json]] = {"handled": [], "first_response": [], "response": [], "resolution": []}
        for sample in reversed(await self.get(f"/analytics/agents/{agent_id}/samples", **WIDEST)):
            found[sample["metric"]].append(sample)
        return found

    def check(self, samples: list[Json], *expected: int) -> None:
        """Each sample has as many seconds as the clock was moved by, plus at most the time that this test has taken;
        channels report whole seconds."""
        assert len(samples) == len(expected), samples
        most = time.monotonic() - self.began + 1
        for sample, seconds in zip(samples, expected, strict=True):
            assert seconds <= sample["seconds"] <= seconds + most, sample
