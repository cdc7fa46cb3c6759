import re
from pathlib import Path

import pytest

from sapa.access.types import Scope
from sapa.domains import ROUTES
from sapa.http.endpoints import Base, Call, Endpoint, Routes, RouteTable
from sapa.http.errors import ApiError, Conflict, ErrorBody

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "docs/life-of-a-request.md"]
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|work|Users|mnt|opt|srv|var)/[\w.-]+")
ADDRESS_LINE = re.compile(r"^\s*(?:-i|-f|--\S*(?:url|host|links)\b)|https?://|\bgit\+", re.MULTILINE)
SCREAMING = re.compile(r"[A-Z]+(?:_[A-Z]+)*").fullmatch


def wrong_endpoints(domains: list[Routes]) -> list[str]:
    """Endpoints that a key's scopes cannot open, and those that say nothing about themselves."""
    endpoints = [endpoint for routes in domains for endpoint in routes.endpoints]
    return [
        f"{_title(one)} has the unknown scope {scope!r}"
        for one in endpoints
        for scope in one.scopes
        if scope not in list(Scope)
    ] + [f"{_title(one)} has no docstring" for one in endpoints if not one.handler.__doc__]


def _title(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


def all_errors(root: type[ApiError] = ApiError) -> list[type[ApiError]]:
    return [root, *(error for below in root.__subclasses__() for error in all_errors(below))]


def wrong_errors(errors: list[type[ApiError]]) -> list[str]:
    """Errors without a message of their own, and those whose code or status no caller could use."""
    silent = [error for error in errors if not (error.__dict__.get("__doc__") or "").strip()]
    odd = [error for error in errors if error is not ApiError and not _is_usable(error)]
    return [f"{error.__name__} has no message" for error in silent] + [
        f"{error.__name__} answers {error.status} {error.code}" for error in odd
    ]


def _is_usable(error: type[ApiError]) -> bool:
    return 400 <= error.status <= 599 and SCREAMING(error.code) is not None


def wrong_documents(root: Path) -> list[str]:
    """Documents that are missing or empty, and those that name a folder of somebody's machine."""
    found = [f"{name} is missing" for name in DOCUMENTS if not (root / name).is_file() or not (root / name).read_text()]
    if not list(root.glob("docs/decisions/[0-9][0-9][0-9][0-9]-*.md")):
        found.append("there is no decision in docs/decisions")
    texts = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("src/**/*.py")]
    return found + [
        f"{path.relative_to(root)} names {match[0]}"
        for path in texts
        for match in MACHINE_PATH.finditer(path.read_text())
    ]


def lock_addresses(text: str) -> list[str]:
    """Lines of a lock file that say where packages come from."""
    return [match[0] for match in ADDRESS_LINE.finditer(text)]


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete"])
def test_a_route_without_a_scope_cannot_be_declared(method: str) -> None:
    routes = Routes("/letters", base=Base.CUSTOMER, tag="Letters")
    with pytest.raises(TypeError, match="scope"):
        getattr(routes, method)("")


def test_every_route_has_a_known_scope_and_a_description() -> None:
    assert ROUTES
    assert wrong_endpoints(ROUTES) == []


def test_a_route_with_an_unknown_scope_or_no_description_is_seen() -> None:
    routes = Routes("/letters", base=Base.CUSTOMER, tag="Letters")

    @routes.get("", scope="letters:READ")
    async def list_letters(call: Call) -> ErrorBody:
        raise AssertionError

    assert len(wrong_endpoints([routes])) == 2


def test_every_error_has_a_message_of_its_own() -> None:
    errors = [error for error in all_errors() if error.__module__.startswith("sapa.")]
    assert len(errors) > 10
    assert wrong_errors(errors) == []


def test_an_error_without_a_message_or_with_a_malformed_code_is_seen() -> None:
    class Silent(Conflict):
        code = "SILENT"

    class Odd(Conflict):
        """This is odd."""

        code = "odd"

    assert len(wrong_errors([Silent, Odd])) == 2


def test_the_documents_are_there_and_name_no_machine() -> None:
    assert wrong_documents(ROOT) == []


def test_a_missing_document_and_a_machines_folder_are_seen(tmp_path: Path) -> None:
    for name in [*DOCUMENTS, "docs/decisions/0001-one.md"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("Sapa: see http://127.0.0.1:8000/customer/v1/docs and ./data\n")
    assert wrong_documents(tmp_path) == []
    (tmp_path / "CHANGELOG.md").write_text("")
    (tmp_path / "LICENSE").unlink()
    (tmp_path / "docs/decisions/0001-one.md").rename(tmp_path / "docs/decisions/one.md")
    (tmp_path / "README.md").write_text("Run /home/ayu/sapa/run.")
    assert len(wrong_documents(tmp_path)) == 4


def test_the_lock_file_names_no_host() -> None:
    locks = list((ROOT / "requirements").rglob("*.txt"))
    assert locks
    for lock in locks:
        assert "--hash=sha256:" in lock.read_text()
        assert lock_addresses(lock.read_text()) == []


def test_the_lock_file_of_node_has_hashes_and_no_host() -> None:
    lock = (ROOT / "requirements" / "openapi" / "package-lock.json").read_text()
    assert '"integrity": "sha512-' in lock
    assert '"resolved"' not in lock


@pytest.mark.parametrize(
    "line", ["-i x", "--index-" + "url x", "--find-links x", "a @ https://a.example/a.whl", "a @ git+ssh://x"]
)
def test_a_host_in_the_lock_file_is_seen(line: str) -> None:
    assert lock_addresses(f"a==1 --hash=sha256:00\n{line}\n")


async def swapped(call: Call, item_id: str, letter_id: str) -> ErrorBody:
    raise AssertionError


async def misspelt(call: Call, leter_id: str, item_id: str) -> ErrorBody:
    raise AssertionError


async def silent(call: Call, letter_id: str, item_id: str) -> None: ...


def test_path_parameters_are_bound_by_name() -> None:
    routes = Routes("/letters", base=Base.CUSTOMER, tag="Letters")
    routes.get("/{letterId}/items/{itemId}", scope=Scope.CUSTOMERS_READ)(swapped)
    assert routes.endpoints[0].bind(["letter", "item"], b"", "", b"") == ["item", "letter"]


@pytest.mark.parametrize(("method", "handler"), [("get", misspelt), ("get", silent), ("delete", swapped)])
def test_a_handler_that_does_not_fit_its_route_cannot_be_declared(method: str, handler: object) -> None:
    routes = Routes("/letters", base=Base.CUSTOMER, tag="Letters")
    with pytest.raises(TypeError, match="/letters"):
        getattr(routes, method)("/{letterId}/items/{itemId}", scope=Scope.CUSTOMERS_READ)(handler)


def test_a_route_cannot_be_declared_twice() -> None:
    routes = Routes("/letters", base=Base.CUSTOMER, tag="Letters")
    for _ in range(2):
        routes.get("/{letterId}/items/{itemId}", scope=Scope.CUSTOMERS_READ)(swapped)
    with pytest.raises(TypeError, match="declared twice"):
        RouteTable([routes])
