"""Names of the usual browsers and systems, from what a browser says of itself."""

BROWSERS = {
    "Edg": "Edge", "OPR/": "Opera", "SamsungBrowser/": "Samsung Internet", "Firefox/": "Firefox", "FxiOS/": "Firefox",
    "Chrome/": "Chrome", "CriOS/": "Chrome", "Safari/": "Safari",
}  # fmt: skip
"""By a word of theirs. The first counts: most also have the words of others."""
SYSTEMS = {
    "Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "CrOS": "ChromeOS", "Windows": "Windows",
    "Macintosh": "macOS", "Linux": "Linux",
}  # fmt: skip


def name_browser(user_agent: str) -> tuple[str, str] | None:
    """The browser and its system; None for others."""
    browser, system = (
        next((name for word, name in words.items() if word in user_agent), None) for words in (BROWSERS, SYSTEMS)
    )
    return (browser, system) if browser and system else None
