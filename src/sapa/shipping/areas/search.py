"""Searching areas by words of any level, with one edit tolerated in each word. Pure: no database."""

import re
from collections.abc import Callable, Iterable, Sequence

from sapa.shipping.carriers.interface import AreaPath
from sapa.values.text_folding import fold

MAX_TERMS = 8
SHORTEST_PREFIX = 3
"""Shorter words match as they are only."""
SHORTEST_TOLERANT = 4
"""In a shorter word one edit would make it another."""
NOISE = frozenset("kec kecamatan kel kelurahan ds desa prov provinsi kodepos".split())
"""Words that people write before the names, and names do not contain."""

_split = re.compile(r"[^\W_]+").findall


def split_words(text: str) -> list[str]:
    return _split(fold(text))


def parse_terms(text: str) -> list[str]:
    """The words to look for; those that only say what kind of area follows are left out."""
    words = split_words(text)
    terms = [word for word in words if word not in NOISE] or words
    return list(dict.fromkeys(terms))[:MAX_TERMS]


def build_query(terms: Sequence[str]) -> str:
    """A tsquery: every word must begin one of the area's words."""
    return " & ".join(f"'{term}':*" if len(term) >= SHORTEST_PREFIX else f"'{term}'" for term in terms)


def build_tolerant_query(terms: Sequence[str], similar: Iterable[str]) -> str:
    """A tsquery that also takes the words of `similar` that are one edit away."""
    words = list(similar)
    groups = []
    for term in terms:
        close = [word for word in words if has_distance_of_one(term, word)] if is_tolerant(term) else []
        groups.append(" | ".join([build_query([term]), *(f"'{word}'" for word in close)]))
    return " & ".join(f"({group})" for group in groups)


def is_tolerant(term: str) -> bool:
    """Numbers are not: another postal code is another place."""
    return len(term) >= SHORTEST_TOLERANT and not term.isdigit()


def list_spellings(word: str) -> set[str]:
    """The word, and the word with any one letter left out. Two words that are one edit apart share a spelling."""
    return {word, *(word[:n] + word[n + 1 :] for n in range(len(word)))}


def has_distance_of_one(one: str, other: str) -> bool:
    """Whether one insertion, deletion, substitution or swap of neighbours turns one word into the other."""
    if one == other or abs(len(one) - len(other)) > 1:
        return False
    start = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    left, right = one[start:], other[start:]
    if len(left) != len(right):
        longer, shorter = (left, right) if len(left) > len(right) else (right, left)
        return longer[1:] == shorter
    return left[1:] == right[1:] or (left[:2] == right[1::-1] and left[2:] == right[2:])


def search_places(places: Iterable[AreaPath], text: str, limit: int) -> list[AreaPath]:
    """For a few places in memory: by the rules of the dictionary's index."""
    terms = parse_terms(text)
    words = [(place, [split_words(name) for name in place.names], split_words(place.zip or "")) for place in places]

    def find(matches: Callable[[str, Sequence[str]], bool]) -> list[AreaPath]:
        scored = []
        for place, names, zip_words in words:
            levels = [[*names[0], *zip_words], *names[1:]]
            found = [next((n for n, own in enumerate(levels) if matches(term, own)), None) for term in terms]
            if terms and None not in found:
                scored.append((sum(level or 0 for level in found), place.label, place))
        return [place for _, _, place in sorted(scored, key=lambda entry: entry[:2])[:limit]]

    return find(_begins) or find(_resembles)


def _begins(term: str, words: Sequence[str]) -> bool:
    return any(word.startswith(term) if len(term) >= SHORTEST_PREFIX else word == term for word in words)


def _resembles(term: str, words: Sequence[str]) -> bool:
    return _begins(term, words) or (is_tolerant(term) and any(has_distance_of_one(term, word) for word in words))
