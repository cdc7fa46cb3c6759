"""A ticket as one conversation: messages, notes and events in order."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

TICKS = {-1: "failed", 0: "pending", 1: "sent", 2: "delivered", 3: "read"}
BEGINNINGS = frozenset({"opened", "reopened"})

Json = dict[str, Any]


class ThreadItem(Struct, frozen=True):
    """One line of the conversation."""

    kind: str
    """in, out, note or event."""
    key: str
    at: str
    content: Json
    who: str | None
    """The agent's name."""
    tick: str | None = None
    """The delivery status of an outbound message."""


def build_lines(ticket: Json, names: dict[int, str], is_latest: bool = True) -> list[ThreadItem]:
    """At the same instant a message follows the event that opened the ticket and precedes its consequences.

    Only notes and events of the shown messages are included.
    """
    placed = [*_place_messages(ticket["messages"], names), *_place_rest(ticket, names, is_latest)]
    return [line for _, _, line in sorted(placed, key=lambda one: one[:2])]


def _place_messages(messages: list[Json], names: dict[int, str]) -> Iterable[tuple[float, int, ThreadItem]]:
    """In order of arrival, because channels give times in whole seconds."""
    last_at = 0.0
    for message in messages:
        left_at = (message["sentAt"] or message["failedAt"]) if message["direction"] == "out" else None
        last_at = max(last_at, _read_seconds(left_at) if left_at else message["timestamp"])
        at = datetime.fromtimestamp(message["timestamp"], UTC).isoformat()
        tick = TICKS.get(message["ack"]) if message["direction"] == "out" else None
        line = ThreadItem(
            message["direction"], message["messageId2"], at, message, _name(names, message["agentId"]), tick
        )
        yield last_at, 1, line


def _place_rest(ticket: Json, names: dict[int, str], is_latest: bool) -> Iterable[tuple[float, int, ThreadItem]]:
    seconds = [message["timestamp"] for message in ticket["messages"]] or [0]
    first = seconds[0] if ticket["earlier"] else 0
    for rank, line in [*_list_events(ticket, names), *_list_notes(ticket, names)]:
        last_at = _read_seconds(line.at)
        if first <= last_at and (is_latest or last_at < seconds[-1] + 1):
            yield last_at, rank, line


def _list_events(ticket: Json, names: dict[int, str]) -> Iterable[tuple[int, ThreadItem]]:
    for number, event in enumerate(ticket["events"]):
        rank = 0 if event["kind"] in BEGINNINGS else 2
        yield rank, ThreadItem("event", f"event-{number}", event["at"], event, _name(names, event["agentId"]))


def _list_notes(ticket: Json, names: dict[int, str]) -> Iterable[tuple[int, ThreadItem]]:
    for note in ticket["notes"]:
        yield 2, ThreadItem("note", note["id"], note["createdAt"], note, _name(names, note["agentId"]))


def _read_seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _name(names: dict[int, str], agent_id: int | None) -> str | None:
    return None if agent_id is None else names.get(agent_id, f"#{agent_id}")
