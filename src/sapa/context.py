"""What a process of the product works with."""

import asyncio
from collections.abc import Sequence

from msgspec import Struct, field

from sapa.db.pool import Database
from sapa.http.errors import ServiceUnavailable
from sapa.http.hooks import Hook, HookAnswer, HookCall, answer_hook
from sapa.outbound.client import Client
from sapa.outbound.loopback import Loopback
from sapa.outbound.mail_sink import MailSink
from sapa.settings import Settings
from sapa.values.sealing import Vault


class NoSecretKey(ServiceUnavailable):
    """This needs stored secrets, and the operator has not set SAPA_SECRET_KEY."""


class Kit(Struct, frozen=True):
    """The database and the ways to the outside, made once for each process."""

    settings: Settings
    database: Database
    client: Client
    loopback: Loopback
    mail_sink: MailSink
    sealing: Vault | None
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process ends: answers that go on for as long as somebody listens end then."""

    @property
    def vault(self) -> Vault:
        if self.sealing is None:
            raise NoSecretKey
        return self.sealing

    async def close(self) -> None:
        self.closing.set()
        await self.client.close()
        await self.loopback.close()
        await self.mail_sink.close()


def build_kit(settings: Settings, database: Database, hooks: Sequence[Hook[Kit]] = ()) -> Kit:
    """The hooks are what this process answers on its loopback address."""
    kit: Kit

    async def answer(call: HookCall) -> HookAnswer:
        return await answer_hook(kit, hooks, call)

    key = settings.secret_key
    sealing = Vault(key) if key else None
    kit = Kit(settings, database, Client(settings.webhooks), Loopback(answer), MailSink(answer), sealing)
    return kit
