"""Programs outside that get callbacks on this machine."""

from collections.abc import AsyncIterator

import pytest

from sapa.db.pool import Database
from tests.conftest import Installation
from tests.sandbox.address.outside import OutsideProgram, open_program
from tests.sandbox.address.receiver import CallbackReceiver, open_receiver


@pytest.fixture
async def called_back(post_office: Installation, post: Database) -> AsyncIterator[OutsideProgram]:
    async with open_program(post_office, post) as opened:
        yield opened


@pytest.fixture
async def receiver() -> AsyncIterator[CallbackReceiver]:
    async with open_receiver() as opened:
        yield opened
