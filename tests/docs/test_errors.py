"""The catalogue of errors is that of the classes."""

from collections.abc import Iterable

from docs.generator.errors import FILE, build_catalogue, build_entries, describe, import_everything, list_classes
from sapa.http.errors import ApiError, Conflict


def test_the_catalogue_is_current() -> None:
    assert FILE.read_text() == build_catalogue(), "run `make docs`"


def list_without_fix(errors: Iterable[type[ApiError]]) -> list[str]:
    """A code of its own needs a fix of its own: that of a parent is about the parent."""
    return [
        error.__name__
        for error in errors
        if not getattr(error, "fix", "").endswith(".") or ("code" in vars(error) and "fix" not in vars(error))
    ]


def test_every_error_says_what_to_do() -> None:
    import_everything()
    assert list_without_fix(list_classes()) == []


def test_an_error_that_does_not_is_seen() -> None:
    class Planted(ApiError):
        """Something new."""

        code = "PLANTED"

    class PlantedConflict(Conflict):
        """Something else that is new."""

        code = "PLANTED_CONFLICT"

    assert list_without_fix([Planted, PlantedConflict]) == ["Planted", "PlantedConflict"]
    assert Planted not in list_classes(), "only the product's own are in the catalogue"


def test_every_code_of_an_operation_is_in_the_catalogue() -> None:
    entries = {entry.code: entry for entry in build_entries()}
    assert "`create_customer`, `update_customer`" in describe(entries["CUSTOMER_EXISTS"])
    assert "**Operations:** any" in describe(entries["RATE_LIMIT_EXCEEDED"])
    assert "those of Shipping" in describe(entries["UNAUTHORIZED"])
    assert entries["WRONG_PASSWORD"].endpoints == []
    assert entries["SERVICE_UNAVAILABLE"].can_be_retried
    assert not entries["SEND_FAILED"].can_be_retried
