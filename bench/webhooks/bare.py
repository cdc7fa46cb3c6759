"""The yardstick: aiohttp on uvloop, posting the same bytes with the same headers from memory, and nothing else.

python -m bench.webhooks.bare URL DELIVERIES CONCURRENCY prints the seconds that it took, and those of CPU.
"""

import asyncio
import sys
import time
from itertools import count

import aiohttp
import uvloop

from bench.webhooks.stored import BODY_BYTES, KIND
from sapa.webhooks.signing import build_headers, new_secret


async def post_all(url: str, deliveries: int, concurrency: int) -> tuple[float, float]:
    body = b'{"id":"' + b"x" * (BODY_BYTES - 9) + b'"}'
    headers = build_headers([new_secret()], "evt_" + "0" * 26, KIND, body, int(time.time()))
    numbers = count(1)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def post_some() -> None:
            while next(numbers) <= deliveries:
                async with session.post(url, data=body, headers=headers) as answer:
                    await answer.read()

        started, spent = time.monotonic(), time.process_time()
        await asyncio.gather(*(post_some() for _ in range(concurrency)))
        return time.monotonic() - started, time.process_time() - spent


if __name__ == "__main__":
    print(*uvloop.run(post_all(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
