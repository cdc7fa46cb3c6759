"""The first start: a demo company with keys, shown once."""

from sapa.access import actions
from sapa.access.types import KeyIn, KeyProduct, Scope
from sapa.db.pool import open_database
from sapa.demo.shop import DEMO_COMPANY
from sapa.people import actions as people
from sapa.settings import Settings

WELCOME = """
Welcome to Sapa. A demo company was created for you, with two keys that have every scope.
Copy them now: they are shown only once. Open the console link to become the company's first owner.
The link works once and expires after a week.

  console             {address}/console/link/{link}

  live key            {live}
  test key            {test}

  customers & orders  {address}/customer/v1
  messaging           {address}/messaging/v1
  reference           {address}/customer/v1/docs
                      {address}/messaging/v1/docs

Try it:

  curl {address}/customer/v1/customers -H 'x-api-key: {test}'
"""


async def prepare(app_url: str, settings: Settings) -> str | None:
    """Creates the demo company when there is no company yet; returns the text that shows its keys."""
    async with open_database(app_url) as database, database.transaction() as tx:
        await actions.lock_first_start(tx)
        if await actions.list_companies(tx):
            return None
        company = await actions.create_company(tx, DEMO_COMPANY)
        everything = KeyIn(name="first key", scopes=list(Scope), products=list(KeyProduct))
        live = await actions.create_key(tx, company.live_company_id, everything)
        test = await actions.create_key(tx, company.test_company_id, everything)
        link = await people.make_setup_link(tx, company.live_company_id)
    return WELCOME.format(live=live.key, test=test.key, link=link, address=settings.server.address)
