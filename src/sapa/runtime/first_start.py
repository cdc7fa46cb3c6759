"""The first start: a demo company with keys, shown once."""

import os
from pathlib import Path
from typing import TextIO

from sapa.access import actions
from sapa.access.types import DATA_SCOPES, KeyIn, KeyProduct
from sapa.db.pool import open_database
from sapa.demo.company import DEMO_COMPANY
from sapa.people import actions as people
from sapa.runtime.exposure import is_loopback
from sapa.runtime.processes import CannotStart
from sapa.settings import Settings

WELCOME = """
Welcome to Sapa. A demo company was created for you, with two keys for all of its data.
Copy them now: they are shown only once. Open the console link to become the company's first owner.
The link works once and expires after a week.

  console             {address}/console/link/{link}

  live key            {live}
  test key            {test}

  customers & orders  {address}/customer/v1
  messaging           {address}/messaging/v1
  documentation       {address}/docs
  reference           {address}/customer/v1/docs
                      {address}/messaging/v1/docs

Try it:

  curl {address}/customer/v1/customers -H 'x-api-key: {test}'
"""

WELCOME_FILE = """
Welcome to Sapa. A demo company was created for you. Its keys, and the link that makes you its first owner, are in

  {file}

which only this user can read. Copy them, then delete the file.
"""


def find_file(settings: Settings, output: TextIO) -> Path | None:
    """Where the keys are written; None if they are printed.

    The output of a service or a container is often a log that others read and that is kept.
    """
    is_private = is_loopback(settings.server.host) or output.isatty()
    return None if is_private else settings.data / "first-start.txt"


async def prepare(app_url: str, settings: Settings, file: Path | None = None) -> str | None:
    """Creates the demo company when there is no company yet; returns the text to print."""
    async with open_database(app_url) as database, database.transaction() as tx:
        await actions.lock_first_start(tx)
        if await actions.list_companies(tx):
            return None
        company = await actions.create_company(tx, DEMO_COMPANY)
        everything = KeyIn(name="first key", scopes=list(DATA_SCOPES), products=list(KeyProduct))
        live = await actions.create_key(tx, company.live_company_id, everything)
        test = await actions.create_key(tx, company.test_company_id, everything)
        link = await people.make_setup_link(tx, company.live_company_id)
        welcome = WELCOME.format(live=live.key, test=test.key, link=link, address=settings.server.address)
        if file is None:
            return welcome
        _write(file, welcome)  # before the commit: without the file nobody would know the keys
        return WELCOME_FILE.format(file=file)


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        advice = "Choose another folder with --data."
        raise CannotStart(f"The first keys cannot be written to {file} ({error.strerror}). {advice}") from None
