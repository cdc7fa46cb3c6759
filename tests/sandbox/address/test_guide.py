"""The guide's examples, run as they stand there."""

import asyncio
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.http.test_generators import TOOLS
from tests.sandbox.address.outside import OutsideProgram
from tests.sandbox.address.receiver import VERIFY_TOKEN, CallbackReceiver
from tests.webhooks.test_snippets import NODE

pytestmark = pytest.mark.processes

GUIDE = (Path(__file__).parents[3] / "docs" / "whatsapp-mock.md").read_text()


def find_example(name: str) -> bytes:
    found = re.findall(rf"^```{name}\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    assert len(found) == 1, name
    return str(found[0]).encode()


async def run(
    program: OutsideProgram,
    name: str,
    *command: str,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> str:
    """Runs the example as the standard input of a command."""
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "ADDRESS": program.whatsapp["address"],
        "TOKEN": program.whatsapp["credentials"]["access_token"],
        "NUMBER": program.number,
        **(variables or {}),
    }
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environ, stdin=pipe, stdout=pipe, stderr=pipe
    )
    output, errors = await process.communicate(find_example(name))
    assert process.returncode == 0, errors.decode()
    return output.decode()


@pytest.mark.long
async def test_curl_subscribes_and_sends(called_back: OutsideProgram, receiver: CallbackReceiver) -> None:
    shell = ("bash", "-e")
    callback = {"CALLBACK": receiver.address + "/", "VERIFY_TOKEN": VERIFY_TOKEN}
    assert await run(called_back, "sh subscribe", *shell, variables=callback) == '{"success":true}'
    assert '"wa_id":"12015550100"' in await run(called_back, "sh send", *shell)
    await receiver.wait_for(lambda: len(receiver.list_values("statuses")) == 3)


async def test_pywa_sends(called_back: OutsideProgram) -> None:
    assert (await run(called_back, "python pywa", sys.executable, "-")).startswith("wamid.")


@pytest.mark.long
async def test_kapso_sends(called_back: OutsideProgram) -> None:
    node = (str(NODE), "--input-type=module", "-")
    assert (await run(called_back, "js kapso", *node, folder=TOOLS)).startswith("wamid.")
