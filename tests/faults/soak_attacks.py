"""Strangers who attack an installation at stated rates, in one process of lowest priority.

`python -m tests.faults.soak_attacks PORT METRICS_URL MAIL_HOOK SECONDS`
"""

import asyncio
import os
import resource
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count, cycle

import httpx

from tests.console.people import read_token
from tests.faults.silent_sockets import open_silent
from tests.messaging.channels.test_hostile_mail import SHAPES

SILENT_SOCKETS = 2000
STRANGER = "127.0.0.2"
"""Where silent sockets come from; 127.0.0.1 is a trusted proxy, which has no limit of its own."""
RATES = {"bad keys": 50, "guesses": 5, "metrics": 20, "half heads": 20, "large bodies": 0.5, "poison mails": 0.5}
"""A second."""
LARGE = b"x" * 31_000_000
POISON_BYTES = 60_000


class Attacks:
    def __init__(self, port: int, metrics: str, mail_hook: str) -> None:
        self._port = port
        self._metrics = metrics
        self._mail_hook = mail_hook
        self._numbers = count()
        self._shapes = cycle(SHAPES.values())
        self._client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120)
        self.made = dict.fromkeys(RATES, 0)

    async def run(self, seconds: float) -> None:
        deeds: dict[str, Callable[[], Awaitable[object]]] = {
            "bad keys": self._try_key,
            "guesses": self._guess,
            "metrics": self._read_metrics,
            "half heads": self._send_half,
            "large bodies": self._send_large,
            "poison mails": self._send_poison,
        }
        ends = time.monotonic() + seconds
        attacks = [self._repeat(name, deed, ends) for name, deed in deeds.items()]
        await asyncio.gather(*attacks, asyncio.to_thread(self._keep_silent, ends))
        await self._client.aclose()

    async def _repeat(self, name: str, deed: Callable[[], Awaitable[object]], ends: float) -> None:
        """At its rate as long as it gets answers, and slower when it has to wait for them."""
        while time.monotonic() < ends:
            started = time.monotonic()
            with suppress(httpx.HTTPError, OSError):
                await deed()
            self.made[name] += 1
            await asyncio.sleep(max(0.0, started + 1 / RATES[name] - time.monotonic()))

    def _from_elsewhere(self) -> dict[str, str]:
        number = next(self._numbers)
        return {"x-forwarded-for": f"2001:db8:{number >> 16 & 0xFFFF:x}:{number & 0xFFFF:x}::1"}

    async def _try_key(self) -> None:
        await self._client.get("/customer/v1/customers", headers={"x-api-key": f"svc_live_{next(self._numbers)}"})

    async def _guess(self) -> None:
        headers = self._from_elsewhere()
        token = await read_token(self._client, "/console/sign-in")
        form = {"token": token, "email": "owner@example.com", "password": f"guess number {next(self._numbers)}"}
        await self._client.post("/console/sign-in", data=form, headers=headers)

    async def _read_metrics(self) -> None:
        await self._client.get(self._metrics)

    async def _send_half(self) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", self._port, local_addr=(STRANGER, 0))
        writer.write(b"GET /customer/v1/customers HTTP/1.1\r\nHost: sapa")
        await writer.drain()
        writer.close()

    async def _send_large(self) -> None:
        """To a hook whose token is wrong by one letter."""
        await self._client.post(f"{self._mail_hook}x", content=LARGE)

    async def _send_poison(self) -> None:
        mail = b"From: mallory@example.net\r\n" + next(self._shapes)(POISON_BYTES)
        await self._client.post(self._mail_hook, content=mail)

    def _keep_silent(self, ends: float) -> None:
        """As many sockets as the server lets stay, opened again in turn."""
        opened: list[socket.socket] = []
        while time.monotonic() < ends:
            with suppress(OSError):
                opened += open_silent(self._port, 20, STRANGER)
            while len(opened) > SILENT_SOCKETS:
                opened.pop(0).close()
            time.sleep(0.2)
        for one in opened:
            one.close()


if __name__ == "__main__":
    os.nice(19)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    port, metrics, mail_hook, seconds = sys.argv[1:]
    attacks = Attacks(int(port), metrics, mail_hook)
    asyncio.run(attacks.run(float(seconds)))
    print(", ".join(f"{number} {name}" for name, number in attacks.made.items()))
