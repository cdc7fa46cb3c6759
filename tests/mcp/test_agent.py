"""An agent at work, scripted: it knows the tools by their list only, finds an order, and answers the customer."""

from typing import Any

import pytest

from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.factories import Environments, make_customer, make_key, make_order
from tests.http.wire import eventually
from tests.mcp.client import McpClient, connect_mcp


class ScriptedAgent:
    """Chooses a tool by words in its description and fills in arguments that its schema has."""

    def __init__(self, client: McpClient, tools: list[dict[str, Any]]) -> None:
        self._client = client
        self._tools = tools

    def find(self, *words: str) -> dict[str, Any]:
        found = [tool for tool in self._tools if all(word in tool["description"].lower() for word in words)]
        assert found, words
        return min(found, key=lambda tool: len(tool["description"]))

    async def use(self, tool: dict[str, Any], /, **arguments: Any) -> Any:
        assert set(arguments) <= set(tool["inputSchema"]["properties"])
        assert set(tool["inputSchema"].get("required", [])) <= set(arguments)
        return await self._client.run(tool["name"], **arguments)


@pytest.mark.smoke
async def test_an_agent_finds_an_order_and_answers_a_ticket(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.test)
    async with connect(installation, key.raw) as rest:
        customer = await make_customer(rest, firstName="Ayu", lastName="Lestari", phoneNumber="+628123456789")
        order = await make_order(rest, customerId=customer["id"], orderId="1042")
    async with connect_mcp(installation, key.raw) as client:
        agent = ScriptedAgent(client, await client.list_tools())
        await agent.use(
            agent.find("simulate a message"), source="MSGAPP_CLOUD", **{"from": "+628123456789"}, text="Pesanan 1042?"
        )

        async def look() -> Any:
            return next(iter((await agent.use(agent.find("list tickets"), status="open"))["data"]), None)

        ticket = await eventually(look)
        detail = (await agent.use(agent.find("one ticket"), id=ticket["id"]))["data"]
        number = detail["messages"][-1]["body"].split()[1].rstrip("?")
        found = (await agent.use(agent.find("list orders"), search=number))["data"]
        assert [one["id"] for one in found] == [order["id"]]
        person = (await agent.use(agent.find("create an agent"), name="Sari", type="ai"))["data"]
        reply = agent.find("reply to the customer")
        assert reply["annotations"] == {
            "readOnlyHint": False, "openWorldHint": True, "destructiveHint": False, "idempotentHint": False,
        }  # fmt: skip
        text = f"Pesanan {found[0]['orderId']} {found[0]['status']}."
        arguments = {"id": ticket["id"], "agentId": person["id"], "body": text, "idempotencyKey": "answer-1"}
        sent = (await agent.use(reply, **arguments))["data"]
        assert (await agent.use(reply, **arguments))["data"]["messageId2"] == sent["messageId2"]
        await agent.use(agent.find("resolve a ticket"), id=ticket["id"], agentId=person["id"])
        detail = (await agent.use(agent.find("one ticket"), id=ticket["id"]))["data"]
        bodies = [message["body"] for message in detail["messages"]]
    assert bodies == ["Pesanan 1042?", text]
    assert detail["status"] == "resolved"
