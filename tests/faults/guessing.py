"""The attack: strangers in many networks who guess one account's password at once."""

import asyncio
from collections import Counter

import httpx

from tests.conftest import TLS
from tests.console.people import read_token


async def guess(console: str, email: str, guessers: int, stop: asyncio.Event) -> Counter[int]:
    """The statuses of all guesses until `stop` is set. Each guess comes from a network of its own."""
    statuses: Counter[int] = Counter()
    number = 0
    limits = httpx.Limits(max_connections=guessers)
    async with httpx.AsyncClient(base_url=console, timeout=120, verify=TLS, limits=limits) as client:
        token = await read_token(client, "/sign-in")

        async def guess_on() -> None:
            nonlocal number
            while not stop.is_set():
                number += 1
                forwarded = {"x-forwarded-for": f"2001:db8:{number >> 16:x}:{number & 0xFFFF:x}::1"}
                form = {"token": token, "email": email, "password": f"guess number {number}"}
                statuses[(await client.post("/sign-in", data=form, headers=forwarded)).status_code] += 1

        await asyncio.gather(*(guess_on() for _ in range(guessers)))
    return statuses
