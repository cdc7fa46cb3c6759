"""How commands reach channels and carriers, and in the test environment their simulators."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from sapa.cli.connect import reach_database
from sapa.context import AppContext
from sapa.domains import build_process_kit
from sapa.runtime.embedded import EmbeddedServer
from sapa.settings import Settings, read_settings


@asynccontextmanager
async def open_context() -> AsyncIterator[AppContext]:
    """What a process works with, for as long as a command runs."""
    async with reach_database() as database:
        context = build_process_kit(_with_key(read_settings()), database)
        try:
            yield context
        finally:
            await context.close()


def _with_key(settings: Settings) -> Settings:
    """The data folder has a key of its own."""
    if settings.secret_key is not None or settings.database.url is not None:
        return settings
    return msgspec.structs.replace(settings, secret_key=EmbeddedServer(settings.data).secret_key)
