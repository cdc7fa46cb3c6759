"""Responses that the simulators share, and failures that a shipment can request."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import msgspec

from sapa.values.hook_calls import HookAnswer, HookCall

DOWN_VALUE = 503_503
SLOW_VALUE = 504_504
"""Declared values that make a quote fail or hang, because a quote has no notes for a scenario."""

SLOW_SECONDS = 6.0
LOCAL = timezone(timedelta(hours=7), "WIB")


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> HookAnswer:
    return HookAnswer(status, msgspec.json.encode(value), {"content-type": "application/json", **(headers or {})})


def gateway_timeout() -> HookAnswer:
    """A gateway's response if the carrier times out."""
    return HookAnswer(504, b"<html><body>504 Gateway Time-out</body></html>", {"content-type": "text/html"})


def service_unavailable() -> HookAnswer:
    return HookAnswer(503, b"Service Unavailable", {"content-type": "text/plain"})


def read_json(call: HookCall) -> dict[str, Any]:
    """The body; an empty object if it is not one."""
    try:
        found = msgspec.json.decode(call.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


async def find_failure(value: object) -> HookAnswer | None:
    """The failure that a declared value requests, if any."""
    if value == DOWN_VALUE:
        return service_unavailable()
    if value == SLOW_VALUE:
        await asyncio.sleep(SLOW_SECONDS)
    return None


def local_text(instant: datetime) -> str:
    """Jakarta's time, rounded up to the second, so that no effect precedes its cause."""
    whole = instant.replace(microsecond=0) + timedelta(seconds=bool(instant.microsecond))
    return whole.astimezone(LOCAL).strftime("%Y-%m-%d %H:%M:%S")


def milliseconds(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


def number(value: object) -> Decimal:
    """The number, or 0 if it is not one."""
    return Decimal(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else Decimal(0)
