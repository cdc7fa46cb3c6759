"""Ports and announcements: how a lower room reaches a higher one without importing it.

A room that only announces a change publishes an announcement; its subscribers run in the same transaction. A
room that needs a result declares a port. `wiring.py` holds both tables and installs them once for each process.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from sapa.db.pool import Tx
from sapa.values.company import Company

T = TypeVar("T")


class NotInstalled(RuntimeError):
    """A port or announcement was used before `sapa.wiring.install()` had run."""


class Port(Generic[T]):
    """What a room asks of a higher room. Declare it beside the protocol that its implementation follows."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._implementation: T | None = None

    def install(self, implementation: T) -> None:
        self._implementation = implementation

    @property
    def installed(self) -> T:
        if self._implementation is None:
            raise NotInstalled(f"Nothing is installed for the port {self.name!r}; call sapa.wiring.install().")
        return self._implementation


class Announcement(Struct, frozen=True):
    """What a room announces to its subscribers. A subclass is the whole declaration."""


Subscriber = Callable[[Tx, Company, Any], Awaitable[None]]
Subscriptions = Mapping[type[Announcement], Sequence[Subscriber]]

_subscriptions: Subscriptions | None = None


def install_subscriptions(table: Subscriptions) -> None:
    global _subscriptions
    _subscriptions = table


async def publish(tx: Tx, company: Company, announcement: Announcement) -> None:
    """Runs the subscribers in their order, in the caller's transaction: if one fails, the change is undone."""
    if _subscriptions is None:
        raise NotInstalled("No subscriptions are installed; call sapa.wiring.install().")
    for subscriber in _subscriptions[type(announcement)]:
        await subscriber(tx, company, announcement)
