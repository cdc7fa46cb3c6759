"""500 labels as one file: from the request, through the worker, to the PDF."""

import asyncio
import time

import aiohttp

from bench.findings import Table, Verdict, at_most, spread
from bench.ground import Ground, SeededCompany
from bench.say import say
from bench.servers import run_sapa, run_worker

SHIPMENTS = 500
ROUNDS, QUICK_ROUNDS = 3, 1
BUDGET_SECONDS = 15
POLL_SECONDS = 0.05
CONCURRENCY = 8

PARTY = {
    "name": "Ayu Lestari", "phone": "+6281234567890", "address": "Jl. Jenderal Sudirman Kav. 52, Senayan",
    "city": "Jakarta Selatan", "province": "DKI Jakarta", "zip": "12190",
}  # fmt: skip
PACKAGE = {"weight": 1.2, "length": 30, "width": 25, "height": 15, "itemName": "Kopi Gayo 250 g", "itemQty": 2}
DOCUMENTS = (("label", "a6"), ("label", "roll80"), ("packing_slip", "a6"), ("manifest", "a6"))


async def measure_labels(ground: Ground, company: SeededCompany, is_quick: bool) -> tuple[list[Verdict], Table]:
    async with run_worker(ground), run_sapa(ground) as sapa:
        say("500 labels")
        address = f"{sapa.address}/customer/v1/shipping"
        async with aiohttp.ClientSession(headers={"x-api-key": company.key}) as session:
            ids = await _create_shipments(session, address)
            measured = {
                document: [await _print(session, address, ids, *document) for _ in range(_rounds(is_quick))]
                for document in DOCUMENTS
            }
    rows = [
        [document.replace("_", " "), format, f"{spread([seconds for seconds, _ in files]).median:.1f}", f"{size:,}"]
        for (document, format), files in measured.items()
        for size in [files[-1][1] // 1024]
    ]
    labels = spread([seconds for seconds, _ in measured["label", "a6"]])
    verdict = at_most(BUDGET_SECONDS, " s", f"time of a file of {SHIPMENTS} labels", labels)
    return [verdict], Table([f"a file of {SHIPMENTS}", "format", "seconds", "KiB"], rows, words=2)


def _rounds(is_quick: bool) -> int:
    return QUICK_ROUNDS if is_quick else ROUNDS


async def _create_shipments(session: aiohttp.ClientSession, address: str) -> list[str]:
    slots = asyncio.Semaphore(CONCURRENCY)

    async def create(number: int) -> str:
        body = {
            "provider": "parcel_carrier", "awb": f"JNE{number:010}", "serviceName": "JNE Reguler", "codAmount": 150000,
            "sender": PARTY, "delivery": PARTY, "package": PACKAGE,
        }  # fmt: skip
        async with slots, session.post(f"{address}/shipments", json=body) as response:
            return str((await response.json())["data"]["id"])

    return list(await asyncio.gather(*map(create, range(SHIPMENTS))))


async def _print(
    session: aiohttp.ClientSession, address: str, ids: list[str], document: str, format: str
) -> tuple[float, int]:
    """Seconds until the file was read, and its bytes."""
    started = time.perf_counter()
    body = {"ids": ids, "document": document, "format": format}
    async with session.post(f"{address}/labels", json=body) as response:
        id = (await response.json())["data"]["id"]
    while True:
        async with session.get(f"{address}/labels/{id}") as response:
            content = await response.read()
            if response.status == 200:
                return time.perf_counter() - started, len(content)
            if response.status != 202:
                raise RuntimeError(f"the file was not made: {content.decode()}")
        await asyncio.sleep(POLL_SECONDS)
