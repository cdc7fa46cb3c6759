"""The hub: hears what the bells of other processes say, on one connection for all parts of this process.

A notification that was sent while the connection was down is lost. So each subscriber is told when its channel begins
to be heard, and looks for itself then.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import asyncpg
import structlog
from msgspec import Struct

from sapa.db.connection import Connection, DatabaseAway, connect

ALIVE_SECONDS = 0.5
"""Between two looks whether the connection still works, and before it is opened again."""
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 1.0

log = structlog.get_logger()


class ChannelSubscription(Struct, eq=False, frozen=True):
    """Interest in a channel, from `Hub.subscribe` until `Hub.unsubscribe`."""

    channel: str
    notify: Callable[[str], object]
    """Called with the payload of each notification."""
    up: Callable[[], object]
    """Called when the channel begins to be heard: whatever was sent before may have been missed."""
    down: Callable[[], object]
    """Called when it is not heard any more, for however long."""


class Hub:
    """Listens while there are subscriptions, and connects again when the connection is lost."""

    def __init__(self, url: str, application: str) -> None:
        self.application = f"{application} listener"
        self._url = url
        self._subscriptions: set[ChannelSubscription] = set()
        self._heard: set[str] = set()
        self._changed = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    def subscribe(
        self,
        channel: str,
        notify: Callable[[str], object],
        up: Callable[[], object] | None = None,
        down: Callable[[], object] = lambda: None,
    ) -> ChannelSubscription:
        """Without `up`, a channel that begins to be heard is a notification without a payload."""
        subscription = ChannelSubscription(channel, notify, up or partial(notify, ""), down)
        self._subscriptions.add(subscription)
        self._changed.set()
        if channel in self._heard:
            subscription.up()
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen(), name="database listener")
        return subscription

    def unsubscribe(self, subscription: ChannelSubscription) -> None:
        self._subscriptions.discard(subscription)
        self._changed.set()

    async def close(self) -> None:
        self._subscriptions.clear()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)

    async def _listen(self) -> None:
        try:
            while self._subscriptions:
                try:
                    await self._listen_once()
                except (DatabaseAway, asyncpg.PostgresError) as error:
                    log.warning("notifications are not received", reason=f"{type(error).__name__}: {error}")
                except Exception:
                    log.exception("listening for notifications failed")
                await asyncio.sleep(ALIVE_SECONDS)
        finally:
            self._listening = None

    async def _listen_once(self) -> None:
        connection = await connect(
            self._url,
            timeout=CONNECT_SECONDS,
            command_timeout=ANSWER_SECONDS,
            server_settings={"application_name": self.application},
        )
        try:
            while self._subscriptions:
                self._changed.clear()
                await self._turn_to(connection)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), ALIVE_SECONDS)
                await connection.execute("SELECT 1")
        finally:
            connection.terminate()
            heard, self._heard = self._heard, set()
            for subscription in [each for each in self._subscriptions if each.channel in heard]:
                subscription.down()

    async def _turn_to(self, connection: Connection) -> None:
        """Listens to the channels that somebody subscribes to, and to no others."""
        wanted = {subscription.channel for subscription in self._subscriptions}
        for channel in self._heard - wanted:
            await connection.remove_listener(channel, self._notify)
            self._heard.discard(channel)
        for channel in wanted - self._heard:
            await connection.add_listener(channel, self._notify)
            self._heard.add(channel)
            for subscription in self._list_subscriptions(channel):
                subscription.up()

    def _notify(self, _connection: object, _pid: int, channel: str, payload: object) -> None:
        for subscription in self._list_subscriptions(channel):
            subscription.notify(str(payload))

    def _list_subscriptions(self, channel: str) -> list[ChannelSubscription]:
        return [subscription for subscription in self._subscriptions if subscription.channel == channel]
