"""Kapso's client, a WhatsApp library for Node that others wrote, uses the simulator instead of Meta."""

import asyncio
import base64
import json
from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.http.test_generators import TOOLS
from tests.sandbox.address.outside import CUSTOMER, Json, OutsideProgram
from tests.sandbox.address.test_pywa import BESIDE, KINDS, OF_A_MESSAGE, PNG
from tests.webhooks.test_snippets import NODE

pytestmark = [pytest.mark.long, pytest.mark.processes]


async def run_client(given: Json) -> Json:
    """The script is read from standard input, so that it finds the packages of the current folder."""
    script = (Path(__file__).parent / "kapso_client.mjs").read_bytes()
    process = await asyncio.create_subprocess_exec(
        NODE, "--input-type=module", "-", json.dumps(given),
        cwd=TOOLS, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await process.communicate(script)
    assert process.returncode == 0, errors.decode()
    result: Json = json.loads(output)
    return result


async def test_kapso_sends_every_kind_and_reads_every_callback(
    called_back: OutsideProgram, post_office: Installation
) -> None:
    address, _, version = called_back.whatsapp["address"].rpartition("/")
    got = await run_client(
        {
            "base": address,
            "version": version,
            "token": called_back.whatsapp["credentials"]["access_token"],
            "secret": called_back.whatsapp["credentials"]["app_secret"],
            "number": called_back.number,
            "account": called_back.business_account,
            "api": f"{post_office.address}/messaging/v1",
            "key": called_back.api.headers["x-api-key"],
            "customer": CUSTOMER.removeprefix("+"),
            "kinds": [[name, "Halo" if name in BESIDE else None, content] for name, content in KINDS.items()],
            "changes": list(OF_A_MESSAGE.items()),
            "picture": base64.b64encode(PNG).decode(),
        }
    )
    assert (got["unsigned"], got["unread"]) == (0, 0)
    words: dict[str, list[str]] = {}
    for status in got["statuses"]:
        words.setdefault(status["id"], []).append(status["status"])
    assert words == {got["reacted"]: ["sent"], **{id: ["sent", "delivered", "read"] for id in got["sent"]}}
    assert {status["recipientUserId"] for status in got["statuses"]} == {f"ID.{CUSTOMER.removeprefix('+')}"}
    assert [message["type"] for message in got["messages"]] == [
        "text", "image", "video", "audio", "document", "interactive", "order", "interactive", "location", "contacts",
        "text", "text", "text", "edit", "reaction", "revoke",
    ]  # fmt: skip
    answer = next(message for message in got["messages"] if message.get("kapso", {}).get("flowToken"))
    assert (answer["kapso"]["flowToken"], answer["kapso"]["flowResponse"]["city"]) == ("t-1", "Bandung")
    assert got["contacts"][0]["userId"] == f"ID.{CUSTOMER.removeprefix('+')}"
    assert (got["created"]["status"], got["templates"]) == ("APPROVED", ["order_ready"])
    assert got["refusals"] == {"undeliverable": [400, 131026], "pair": [400, 131056], "locked": [403, 131031]}
