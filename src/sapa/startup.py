"""Builds what the processes share. Commands that only use the database do without it."""

from collections.abc import Awaitable, Callable
from typing import Any

from sapa.context import AppContext
from sapa.db.long_reads import LongReads
from sapa.db.pool import Database
from sapa.outbound.bucket import Bucket, parse_address
from sapa.outbound.http_client import HttpClient
from sapa.outbound.loopback import Loopback
from sapa.outbound.mail_sink import MailSink
from sapa.settings import Settings
from sapa.values.hook_calls import HookAnswer, HookCall
from sapa.values.sealing import Vault

AnswerHook = Callable[[AppContext, HookCall], Awaitable[HookAnswer]]
FindHookAccount = Callable[[AppContext, str], Awaitable[Any | None]]


async def answer_nothing(_: AppContext, _call: HookCall) -> HookAnswer:
    return HookAnswer(404)


async def find_no_account(_: AppContext, _path: str) -> None:
    return None


def build_context(
    settings: Settings,
    database: Database,
    answer_hook: AnswerHook = answer_nothing,
    find_hook_account: FindHookAccount = find_no_account,
) -> AppContext:
    """`answer_hook` serves this process's loopback address, where the simulators listen."""
    context: AppContext

    async def answer(call: HookCall) -> HookAnswer:
        return await answer_hook(context, call)

    async def find_account(path: str) -> Any | None:
        return await find_hook_account(context, path)

    key = settings.secret_key
    sealing = Vault(key) if key else None
    loopback = Loopback(answer, find_account)
    context = AppContext(
        settings=settings,
        database=database,
        long_reads=LongReads(database),
        client=HttpClient(settings.webhooks, loopback),
        loopback=loopback,
        mail_sink=MailSink(answer),
        sealing=sealing,
        bucket=Bucket(parse_address(settings.files.url)) if settings.files.url else None,
    )
    return context
