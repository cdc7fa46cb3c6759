"""A carrier that answers at once, whatever it is asked: what Sapa's side of a quote costs is measured against it."""

from typing import Any

import msgspec

from bench.ceiling.app import Receive, Send, answer
from sapa.shipping.carriers.kiriminaja import wire

COURIERS = ["jne", "jnt", "sicepat", "anteraja", "ninja", "tiki"]
SERVICES = {"ECO": "9000", "REG": "12000", "ONS": "19500"}

PRICES = msgspec.json.encode(
    {
        "status": True,
        "text": "success",
        "results": [
            {"service": courier, "service_type": service, "service_name": f"{courier.upper()} {service}", "cost": cost,
             "etd": "2-3", "cod": False, "group": "regular", "drop": True, "insurance": 0}
            for courier in COURIERS for service, cost in SERVICES.items()
        ],
    }
)  # fmt: skip
AREAS = msgspec.json.encode(
    {"status": True, "datas": [{"id": n, "provinsi_name": f"Provinsi {n}"} for n in range(1, 39)]}
)


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    while scope["method"] == "POST" and (await receive()).get("more_body"):
        pass
    await answer(send, 200, PRICES if scope["path"] == wire.PRICE else AREAS)
