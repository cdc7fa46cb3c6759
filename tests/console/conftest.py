"""A real browser at the console of an installation that may deliver to this machine."""

import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, async_playwright

from tests.webhooks.conftest import client, seal, station  # noqa: F401 - fixtures

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        await browser.close()
