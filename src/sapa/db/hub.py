"""The hub: receives notifications of other processes, on one connection for all parts of this process.

A notification that is sent while the connection is down is lost. So each subscriber is called when its channel comes
up, and polls then.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import asyncpg
import structlog
from msgspec import Struct

from sapa.db.connection import Connection, DatabaseAway, connect

CHECK_SECONDS = 0.5
"""Between two checks of the connection, and before it is opened again."""
CONNECT_SECONDS = 5.0
COMMAND_SECONDS = 1.0

log = structlog.get_logger()


class ChannelSubscription(Struct, eq=False, frozen=True):
    """Interest in a channel, from `Hub.subscribe` until `Hub.unsubscribe`."""

    channel: str
    notify: Callable[[str], object]
    """Called with the payload of each notification."""
    up: Callable[[], object]
    """Called when the channel comes up: earlier notifications may have been missed."""
    down: Callable[[], object]
    """Called when the channel goes down."""


class Hub:
    """Listens while there are subscriptions, and connects again when the connection is lost."""

    def __init__(self, url: str, application: str) -> None:
        self.application = f"{application} listener"
        self._url = url
        self._subscriptions: set[ChannelSubscription] = set()
        self._channels: set[str] = set()
        self._changed = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    def subscribe(
        self,
        channel: str,
        notify: Callable[[str], object],
        up: Callable[[], object] | None = None,
        down: Callable[[], object] = lambda: None,
    ) -> ChannelSubscription:
        """Without `up`, a channel that comes up calls `notify` with an empty payload."""
        subscription = ChannelSubscription(channel, notify, up or partial(notify, ""), down)
        self._subscriptions.add(subscription)
        self._changed.set()
        if channel in self._channels:
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
                    log.warning("notifications not received", reason=f"{type(error).__name__}: {error}")
                except Exception:
                    log.exception("notification listener failed")
                await asyncio.sleep(CHECK_SECONDS)
        finally:
            self._listening = None

    async def _listen_once(self) -> None:
        connection = await connect(
            self._url,
            timeout=CONNECT_SECONDS,
            command_timeout=COMMAND_SECONDS,
            server_settings={"application_name": self.application},
        )
        try:
            while self._subscriptions:
                self._changed.clear()
                await self._update_channels(connection)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), CHECK_SECONDS)
                await connection.execute("SELECT 1")
        finally:
            connection.terminate()
            lost, self._channels = self._channels, set()
            for subscription in [each for each in self._subscriptions if each.channel in lost]:
                subscription.down()

    async def _update_channels(self, connection: Connection) -> None:
        """Listens to the channels that have subscribers, and to no others."""
        wanted = {subscription.channel for subscription in self._subscriptions}
        for channel in self._channels - wanted:
            await connection.remove_listener(channel, self._notify)
            self._channels.discard(channel)
        for channel in wanted - self._channels:
            await connection.add_listener(channel, self._notify)
            self._channels.add(channel)
            for subscription in self._list_subscriptions(channel):
                subscription.up()

    def _notify(self, _connection: object, _pid: int, channel: str, payload: object) -> None:
        for subscription in self._list_subscriptions(channel):
            subscription.notify(str(payload))

    def _list_subscriptions(self, channel: str) -> list[ChannelSubscription]:
        return [subscription for subscription in self._subscriptions if subscription.channel == channel]
