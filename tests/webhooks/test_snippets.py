"""The guide's own servers, run as they stand there, and given real deliveries."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import playwright
import pytest

from sapa.webhooks.sender import Target, WebhookMessage
from sapa.webhooks.signing import build_headers, new_secret
from tests.conftest import TLS
from tests.webhooks.zoo import sending

pytestmark = pytest.mark.processes

GUIDE = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text()
NODE = Path(playwright.__file__).parent / "driver" / "node"
RUNNERS = {"python": (sys.executable, "server.py"), "js": (str(NODE), "server.cjs")}
BODY = '{"id":"cust_1","firstName":"Ayu 🌸","total":150000}'.encode()


def find_server(language: str) -> str:
    found = re.findall(rf"^```{language} server\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    assert len(found) == 1
    return str(found[0])


@contextmanager
def running(language: str, folder: Path, secret: str) -> Iterator[str]:
    """The guide's server of this language; yields its address."""
    program, name = RUNNERS[language]
    (folder / name).write_text(find_server(language))
    process = subprocess.Popen(
        [program, str(folder / name)],
        env={"PATH": os.environ["PATH"], "WEBHOOK_SECRET": secret, "PORT": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        port = process.stdout.readline().rsplit(" ", 1)[-1].strip()
        assert port.isdigit(), process.stderr.read()
        yield f"http://127.0.0.1:{port}/hooks"
    finally:
        process.kill()
        process.communicate()


async def deliver(url: str, body: bytes, *secrets: str) -> int | None:
    async with sending() as sender:
        outcome = await sender.send(Target(url, {}, list(secrets)), WebhookMessage("evt_1", "customer.created", body))
    return outcome.status


@pytest.mark.parametrize("language", RUNNERS)
async def test_a_server_of_the_guide_tells_genuine_from_forged(language: str, tmp_path: Path) -> None:
    secret, other = new_secret(), new_secret()
    with running(language, tmp_path, secret) as url:
        assert await deliver(url, BODY, secret) == 204
        assert await deliver(url, b"{}" + b" " * 60_000, secret) == 204
        assert await deliver(url, BODY, secret, other) == 204
        assert await deliver(url, BODY, other, secret) == 204
        assert await deliver(url, BODY, other) == 400


@pytest.mark.parametrize("language", RUNNERS)
def test_a_server_of_the_guide_looks_at_time_body_and_form(language: str, tmp_path: Path) -> None:
    secret, now = new_secret(), int(time.time())
    with running(language, tmp_path, secret) as url:
        for moment, body, status in [(0, BODY, 204), (-400, BODY, 400), (400, BODY, 400), (0, b"{}", 400)]:
            headers = build_headers([secret], "evt_1", "customer.created", BODY, now + moment)
            assert httpx.post(url, content=body, headers=headers, verify=TLS).status_code == status
        for forged in [b"", b"t=1", b"v1=", b"t=%d" % now, b"t=%d,v1=" % now, b"t=%d,v1=\xe9" % now, b"=,=="]:
            response = httpx.post(url, content=BODY, headers={b"X-Service-Webhook-Signature": forged}, verify=TLS)
            assert response.status_code == 400


@pytest.mark.parametrize("language", RUNNERS)
@pytest.mark.parametrize("secret", ["", "whsec_"])
def test_a_server_of_the_guide_does_not_start_without_its_secret(language: str, secret: str, tmp_path: Path) -> None:
    """Anybody could sign with an empty one."""
    with (
        pytest.raises(AssertionError, match="Set WEBHOOK_SECRET to the signing secret"),
        running(language, tmp_path, secret),
    ):
        pass


def test_the_guides_example_is_signed_as_it_says() -> None:
    request = re.search(r"^POST /hooks HTTP/1.1\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    assert request is not None
    head, _, body = request[1].rstrip("\n").partition("\n\n")
    shown = dict(line.split(": ", 1) for line in head.split("\n"))
    made = build_headers(
        ["whsec_0123456789abcdef"],
        shown["X-Service-Webhook-Id"],
        shown["X-Service-Webhook-Event"],
        body.encode(),
        int(shown["X-Service-Webhook-Timestamp"]),
    )
    assert shown == made | {"Host": "shop.example", "Content-Length": str(len(body))}
