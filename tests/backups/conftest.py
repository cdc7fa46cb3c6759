"""A shop to back up: in a database of its own, which nobody changes meanwhile."""

from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import patch

import pytest
from msgspec import Struct

from sapa.db.pool import open_database
from sapa.demo import shop
from sapa.values.sealing import Vault
from tests.cli.command import Outcome, sapa
from tests.conftest import Installation
from tests.db.scratch import Scratch, migrated_database
from tests.factories import MadeKey, make_endpoint, make_key

PASSPHRASE = "correct horse battery staple"


class Source(Struct, frozen=True):
    """The shop's database, the key of its secrets, and a key of its API."""

    database: Scratch
    data: Path
    secret_key: str
    api_key: MadeKey

    def run(self, *arguments: str, **variables: str) -> Outcome:
        """A command of this installation."""
        return sapa(self.data, *arguments, **(self.variables | variables))

    @property
    def variables(self) -> dict[str, str]:
        return {
            "SAPA_DATABASE_URL": self.database.app_url,
            "SAPA_DATABASE_OWNER_URL": self.database.owner_url,
            "SAPA_SECRET_KEY": self.secret_key,
            "SAPA_BACKUP_PASSPHRASE": PASSPHRASE,
        }


@pytest.fixture(scope="session")
async def source(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Source]:
    secret_key = installation.server.secret_key
    async with migrated_database(installation.server) as scratch:
        async with open_database(scratch.app_url) as database:
            with patch.object(shop, "CUSTOMERS", 30), patch.object(shop, "ORDERS", 60):
                company = await shop.fill(database, lambda *_: None)
            await make_endpoint(database, Vault(secret_key), company.id, headers={"authorization": "Bearer 4711"})
            api_key = await make_key(database, company.id)
        yield Source(scratch, tmp_path_factory.mktemp("source"), secret_key, api_key)
