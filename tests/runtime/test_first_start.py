import asyncio

from sapa.runtime.first_start import prepare
from sapa.settings import read_settings
from tests.conftest import Installation
from tests.db.scratch import migrated_database


async def test_of_several_first_starts_at_once_one_makes_the_demo_company(installation: Installation) -> None:
    async with migrated_database(installation.server) as scratch:
        output = await asyncio.gather(*(prepare(scratch.app_url, read_settings({})) for _ in range(5)))
        assert await prepare(scratch.app_url, read_settings({})) is None
    (welcome,) = [text for text in output if text is not None]
    assert welcome.count("svc_live_") == 1
    assert "curl http://127.0.0.1:8000/customer/v1/customers -H 'x-api-key: svc_test_" in welcome
