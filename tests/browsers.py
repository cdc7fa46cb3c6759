"""A real Chromium, with patience for a loaded machine."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests import depth

HEADLESS_SHELL = "chromium-headless-shell"
"""The same engine without windows, menus and notifications, for a good half of the processor time."""
WHOLE_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 120_000
"""Milliseconds."""

# Two windows of the address bar's menu come up with each page, unseen: they take more time than most pages.
ADDRESS_BAR_MENUS = "WebUIOmniboxPopup,WebUIOmniboxAimPopup"
# The browser reads only the last list of this name, so Playwright's own is repeated.
SWITCHED_OFF_BY_PLAYWRIGHT = (
    "AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,"
    "LensOverlay,MediaRouter,PaintHolding,ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,"
    "OptimizationHints,NetworkTimeServiceQuerying,AimEnabled,PreconnectToSearch"
)
ARGUMENTS = ["--no-sandbox", f"--disable-features={SWITCHED_OFF_BY_PLAYWRIGHT},{ADDRESS_BAR_MENUS}"]

expect.set_options(timeout=PATIENCE)


@asynccontextmanager
async def launch(is_whole: bool = False) -> AsyncIterator[Browser]:
    """The whole browser only if it must be, and in `make test-long`."""
    names = WHOLE_BROWSERS if is_whole or depth.is_long() else (HEADLESS_SHELL, *WHOLE_BROWSERS)
    path = next((found for name in names if (found := shutil.which(name))), None)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=ARGUMENTS, timeout=PATIENCE)
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
