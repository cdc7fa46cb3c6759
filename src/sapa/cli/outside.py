"""Gives commands access to channels and carriers, or to their simulators."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from sapa.cli.connect import reach_database
from sapa.context import AppContext
from sapa.domains import build_process_context
from sapa.runtime.embedded import EmbeddedServer
from sapa.settings import Settings, read_settings


@asynccontextmanager
async def open_context() -> AsyncIterator[AppContext]:
    """The application context for the duration of a command."""
    async with reach_database() as database:
        context = build_process_context(_with_key(read_settings()), database)
        try:
            yield context
        finally:
            await context.close()


def _with_key(settings: Settings) -> Settings:
    """The data folder has its own secret key."""
    if settings.secret_key is not None or settings.database.url is not None:
        return settings
    return msgspec.structs.replace(settings, secret_key=EmbeddedServer(settings.data).secret_key)
