"""Names that callers and operators rely on do not change by accident."""

from tests.house.public_names import FILE, list_public_names


def test_public_names_are_those_that_were_committed() -> None:
    committed, names = set(FILE.read_text().splitlines()), set(list_public_names())
    assert sorted(committed - names) == [], "these names are gone; if that is meant, run `make names`"
    assert sorted(names - committed) == [], "these names are new; run `make names`"
