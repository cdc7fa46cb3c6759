"""A process that stops in the middle of an upload, to be killed there."""

import asyncio
import sys
from collections.abc import AsyncIterator

from sapa import wiring
from sapa.access.actions import get_company
from sapa.db.pool import open_database
from sapa.http.uploads import FileStream
from sapa.messaging.files.uploads import upload
from sapa.settings import read_settings
from sapa.startup import build_context

MIB = 1_048_576


async def drip() -> AsyncIterator[bytes]:
    for _ in range(10):
        yield bytes(MIB)
    print("in the middle", flush=True)
    await asyncio.Event().wait()


async def main(database_url: str, company_id: int) -> None:
    wiring.install()
    async with open_database(database_url, size=2) as database:
        context = build_context(read_settings(), database)
        async with database.connection() as db:
            company = await get_company(db, company_id)
        await upload(context, company, FileStream(drip(), 25 * MIB), database.transact)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
