"""A real Chromium, with patience for a loaded machine."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 120_000
"""Milliseconds."""

expect.set_options(timeout=PATIENCE)


@asynccontextmanager
async def launch() -> AsyncIterator[Browser]:
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=PATIENCE)
        yield browser
        await browser.close()


async def new_context(browser: Browser, **options: Any) -> BrowserContext:
    context = await browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    return context


async def new_page(browser: Browser, **options: Any) -> Page:
    page = await browser.new_page(**options)
    page.set_default_timeout(PATIENCE)
    return page
