"""The hub: receives notifications of other processes, on one connection for all parts of this process.

A notification that is sent while the connection is down is lost. So each subscriber is called when its channel comes
up, and polls then.

That the connection works is known from the installation's beat, a notification that one worker sends to all processes.
A hub that does not get it for a while asks PostgreSQL itself.
"""

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial

import asyncpg
import structlog
from msgspec import Struct

from sapa.db.connection import Connection, DatabaseAway, connect
from sapa.traces import create_shared_task

BEAT_CHANNEL = "sapa_beat"
BEAT_SECONDS = 0.7
"""The time between two beats, and before a lost connection is opened again."""
SILENT_SECONDS = 0.85
"""Without a beat for this long, the connection is checked."""
CONNECT_SECONDS = 2.5
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

    def __init__(self, url: str, application: str, abandon: Callable[[], object] = lambda: None) -> None:
        """`abandon` is called when the host that was connected has gone silent."""
        self.application = f"{application} listener"
        self.is_beating = False
        """Whether this process sends the installation's beat."""
        self.alive_at = -math.inf
        """When the connection last worked, on the monotonic clock: all notifications until then have arrived."""
        self._url = url
        self._subscriptions: set[ChannelSubscription] = set()
        self._channels: set[str] = set()
        self._changed = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        self._abandon = abandon
        self._is_silent = False
        self._server: datetime | None = None
        """The start time of the server, which identifies it: after a failover it differs, even at the same address."""

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
            self._listening = create_shared_task(self._listen(), "database listener")
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
                    self._is_silent |= isinstance(error.__cause__, TimeoutError)
                    log.warning("notifications not received", reason=f"{type(error).__name__}: {error}")
                except Exception:
                    log.exception("notification listener failed")
                await asyncio.sleep(BEAT_SECONDS)
        finally:
            self._listening = None

    async def _listen_once(self) -> None:
        connection = await self._connect()
        try:
            await self._compare_server(connection)
            await connection.execute("SET synchronous_commit = off")  # a beat is not worth a write to the disk
            await connection.add_listener(BEAT_CHANNEL, self._notify)
            self.alive_at = time.monotonic()
            while self._subscriptions:
                self._changed.clear()
                await self._update_channels(connection)
                await self._wait_or_check(connection)
        finally:
            connection.terminate()
            self.alive_at = -math.inf
            lost, self._channels = self._channels, set()
            for subscription in [each for each in self._subscriptions if each.channel in lost]:
                subscription.down()

    async def _connect(self) -> Connection:
        try:
            return await connect(
                self._url,
                timeout=CONNECT_SECONDS,
                command_timeout=COMMAND_SECONDS,
                server_settings={"application_name": self.application},
            )
        except DatabaseAway:
            if self._is_silent:
                self._is_silent = False
                self._abandon()
            raise

    async def _compare_server(self, connection: Connection) -> None:
        """Abandons the pool's connections if a timeout was a failover: the old server will not answer any more."""
        before, self._server = self._server, await connection.fetchval("SELECT pg_postmaster_start_time()")
        if self._is_silent and before is not None and self._server != before:
            self._abandon()
        self._is_silent = False

    async def _wait_or_check(self, connection: Connection) -> None:
        """Returns when subscriptions change, or after the next beat or check."""
        seconds = BEAT_SECONDS if self.is_beating else self.alive_at + SILENT_SECONDS - time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._changed.wait()
            return
        now = time.monotonic()
        if self.is_beating:
            await connection.execute(f"NOTIFY {BEAT_CHANNEL}")
        elif now - self.alive_at >= SILENT_SECONDS:
            await connection.execute("SELECT 1")
        else:
            return
        self.alive_at = now

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
        self.alive_at = time.monotonic()
        for subscription in self._list_subscriptions(channel):
            subscription.notify(str(payload))

    def _list_subscriptions(self, channel: str) -> list[ChannelSubscription]:
        return [subscription for subscription in self._subscriptions if subscription.channel == channel]
