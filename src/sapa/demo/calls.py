"""The demo shop's API calls of the last two weeks, as the log of calls shows them."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from sapa.http.access_log import FinishedCall

DAYS = 14
CALLS_A_DAY = 40
FIRST_HOUR, HOURS = 8, 13
KEY_NAME = "Demo web shop"
ADDRESSES = ("203.0.113.7", "203.0.113.8")


class UsualCall(Struct, frozen=True):
    """A call that web shops make."""

    share: int
    method: str
    route: str
    status: int
    milliseconds: float
    code: str | None = None


USUAL = (
    UsualCall(30, "GET", "/customer/v1/orders", 200, 9),
    UsualCall(25, "GET", "/customer/v1/orders/{id}", 200, 3),
    UsualCall(12, "GET", "/customer/v1/products", 200, 7),
    UsualCall(10, "POST", "/customer/v1/orders", 201, 14),
    UsualCall(8, "PUT", "/customer/v1/customers/by-external-id/{externalId}", 200, 8),
    UsualCall(5, "POST", "/messaging/v1/messages/send-template", 200, 180),
    UsualCall(4, "POST", "/customer/v1/shipping/calculate-fee", 200, 240),
    UsualCall(3, "GET", "/customer/v1/orders/{id}", 404, 2, "NOT_FOUND"),
    UsualCall(2, "POST", "/customer/v1/orders", 400, 3, "VALIDATION_ERROR"),
    UsualCall(1, "DELETE", "/customer/v1/products/{id}", 403, 1, "INSUFFICIENT_SCOPE"),
)


def build_calls(company_id: int, key_id: str, now: datetime) -> Iterator[FinishedCall]:
    """The same at every run but for the days; none is later than `now`."""
    draw = random.Random(20)  # noqa: S311 - demo data
    for day in range(DAYS):
        midnight = (now - timedelta(days=day)).replace(hour=0, minute=0, second=0, microsecond=0)
        for _ in range(CALLS_A_DAY):
            at = midnight + timedelta(hours=FIRST_HOUR, seconds=draw.randrange(HOURS * 3600))
            (usual,) = draw.choices(USUAL, [one.share for one in USUAL])
            seconds = usual.milliseconds * draw.uniform(0.7, 2.5) / 1000
            request_id = f"req_{draw.getrandbits(96):024x}"
            if at <= now:
                yield FinishedCall(
                    at.timestamp(),
                    request_id,
                    usual.method,
                    usual.route,
                    usual.route,
                    usual.status,
                    seconds,
                    draw.choice(ADDRESSES),
                    key_id,
                    company_id,
                    usual.code,
                )
