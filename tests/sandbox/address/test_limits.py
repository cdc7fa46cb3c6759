"""How much a WhatsApp number may send from outside: to one person, and in all."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation
from tests.http.wire import eventually
from tests.messaging.conversation_steps import advance
from tests.sandbox.address.outside import CUSTOMER, Json, OutsideProgram, open_program

TEXT: Json = {"type": "text", "text": {"body": "Halo"}}


@pytest.fixture(scope="module")
async def program(installation: Installation, database: Database) -> AsyncIterator[OutsideProgram]:
    async with open_program(installation, database) as opened:
        yield opened


def get_code(answer: httpx.Response) -> int | None:
    code: int | None = answer.json().get("error", {}).get("code")
    return code


async def test_a_person_gets_45_messages_at_once_and_then_one_in_six_seconds(program: OutsideProgram) -> None:
    """The company's clock stands for the time that passes; what really passes allows a few messages more."""
    codes = [get_code(await program.send({"to": CUSTOMER, **TEXT})) for _ in range(45)]
    assert codes == [None] * 45

    async def is_refused() -> bool | None:
        return True if get_code(await program.send({"to": CUSTOMER, **TEXT})) == 131056 else None

    await eventually(is_refused)
    assert get_code(await program.send({"to": "+628123456702", **TEXT})) is None
    assert get_code(await program.send({"to": None, "recipient": f"ID.{CUSTOMER[1:]}", **TEXT})) == 131056
    await advance(program.api, 60)
    codes = [get_code(await program.send({"to": CUSTOMER, **TEXT})) for _ in range(10)]
    assert codes == [None] * 10
    await eventually(is_refused)


@pytest.mark.long
async def test_a_number_sends_only_so_many_in_a_second(program: OutsideProgram) -> None:
    """20 a second by coexistence, which a loaded machine does not reach."""
    numbers = iter(range(10_000))

    async def send() -> httpx.Response:
        return await program.send({"to": f"+62812{next(numbers):07}", **TEXT}, "MSGAPP_COEX")

    async def is_refused() -> httpx.Response | None:
        answers = await asyncio.gather(*(send() for _ in range(60)))
        return next((answer for answer in answers if get_code(answer) == 130429), None)

    refused = await eventually(is_refused)
    assert refused.status_code == 429


async def test_sapas_own_messages_are_not_slowed_down(program: OutsideProgram) -> None:
    """The test environment has no pace: 50 messages to one person are sent."""
    body = {"to": "+12015550100", "sources": "MSGAPP_CLOUD", "message": "Halo"}
    assert {(await program.api.post("/messages/send", json=body)).status_code for _ in range(50)} == {200}
