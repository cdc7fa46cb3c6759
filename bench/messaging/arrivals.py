"""How soon a customer's message is a message with a ticket that a receiver of webhooks knows of."""

import asyncio
import random
import time

import aiohttp

from bench.findings import Table, Verdict, at_most, percentile, spread
from bench.ground import Ground
from bench.messaging.numbers import ConnectedNumber, build_text, connect_number, sign
from bench.say import say
from bench.servers import Server, run_sapa, run_worker
from bench.webhooks.post import Receiver, run_receiver
from bench.webhooks.stored import INSECURE
from sapa.db.pool import open_database
from sapa.messaging.messages.types import MessageReceived
from sapa.values.sealing import Vault
from sapa.webhooks.endpoints import actions as endpoints
from sapa.webhooks.types import WebhookEndpointIn


async def measure_arrivals(ground: Ground, messages: int) -> list[float]:
    """Milliseconds from the channel's callback to the arrival of `message.received`, while nothing else happens."""
    say(f"{messages} messages of a customer, one after the other")
    number = await connect_number(ground, "Written to")
    async with run_receiver(ground) as receiver, run_sapa(ground) as api, run_worker(ground):
        await _subscribe(ground, number, receiver)
        await asyncio.sleep(2)
        times = [await _time_message(api, number, receiver, n) for n in range(messages + 3)]
    return times[3:]


def judge_arrivals(times: list[float]) -> Verdict:
    return at_most(
        60, " ms", "a customer's message until message.received is delivered, p50", spread([percentile(times, 50)])
    )


def build_arrivals_table(times: list[float]) -> Table:
    figures = [f"{percentile(times, percent):.1f}" for percent in (50, 95, 99)]
    return Table(
        ["from a channel's callback to its event's arrival", "p50, ms", "p95, ms", "p99, ms"], [["idle", *figures]]
    )


async def _subscribe(ground: Ground, number: ConnectedNumber, receiver: Receiver) -> None:
    body = WebhookEndpointIn(url=f"{receiver.address}/arrivals", events=[MessageReceived.kind])
    vault = Vault(ground.server.secret_key)
    async with open_database(ground.app_url) as database, database.transaction() as tx:
        await endpoints.create(tx, vault, INSECURE, number.company.id, body)


async def _time_message(api: Server, number: ConnectedNumber, receiver: Receiver, n: int) -> float:
    """Each one is of a customer of its own, whom nobody knows yet."""
    await asyncio.sleep(random.uniform(0.1, 0.5))
    expected = await receiver.count() + 1
    await receiver.arrivals()
    body = build_text(f"62813{n:07d}", "Halo, apakah masih ada?", f"wamid.arrival-{n}")
    async with aiohttp.ClientSession() as session:
        started = time.monotonic()
        async with session.post(api.address + number.hook, data=body, headers=sign(body)) as answer:
            answer.raise_for_status()
        await receiver.wait_for(expected, every=0.005)
    [(_, arrived)] = await receiver.arrivals()
    return (arrived - started) * 1000
