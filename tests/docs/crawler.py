"""Follows every link of a site."""

from collections.abc import Callable
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urljoin


class Page(HTMLParser):
    """The addresses that a page refers to, and the places within it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.places |= {value for value in (named.get("id"), named.get("name")) if value}
        self.links += [value for value in (named.get("href"), named.get("src")) if value]


class Crawl(NamedTuple):
    pages: dict[str, Page]
    broken: list[str]


def crawl(start: str, load: Callable[[str], str | None], follows: Callable[[str], bool]) -> Crawl:
    """Loads every address from the start on; `load` returns the text of a page, "" for other files, None for nothing.

    Links of pages that `follows` refuses are not followed, but must exist.
    """
    pages: dict[str, Page] = {}
    named: dict[str, list[tuple[str, str]]] = {start: []}
    broken: list[str] = []
    waiting = [start]
    while waiting:
        address = waiting.pop()
        text = load(address)
        if text is None:
            broken += [f"{source} links to {address}" for source, _ in named[address]]
            continue
        pages[address] = Page(text)
        if not follows(address):
            continue
        for link in pages[address].links:
            target, place = urldefrag(urljoin(address, link))
            if link.startswith(("data:", "mailto:")) or not target.startswith(start.split("/docs")[0]):
                continue
            if target not in named:
                named[target] = []
                waiting.append(target)
            named[target].append((address, unquote(place)))
    for target, sources in named.items():
        if target in pages and pages[target].places:
            broken += [
                f"{source} links to #{place} of {target}"
                for source, place in sources
                if place and place not in pages[target].places
            ]
    return Crawl(pages, broken)
