"""Files to import, and the command that imports them."""

import csv
import io
from pathlib import Path
from typing import Any

import httpx
import msgspec

from tests.cli.command import Outcome, sapa
from tests.conftest import Installation


class Imported(msgspec.Struct, frozen=True):
    """How an import by the command went."""

    outcome: Outcome
    summary: dict[str, Any]
    errors: list[tuple[int, str, str]]
    """Line, field and reason, as the error file has them."""

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(self.summary[name] for name in ("created", "updated", "unchanged", "failed"))


def run_import(installation: Installation, company: int, path: Path, resource: str, *options: str) -> Imported:
    done = sapa(installation.data, "import", resource, str(path), "--company", str(company), "--json", *options)
    assert done.code in {0, 2}, done.err
    summary = msgspec.json.decode(done.out)
    assert (done.code == 2) == bool(summary["failed"])
    return Imported(done, summary, read_errors(summary["errorFile"]))


def read_errors(path: str | None) -> list[tuple[int, str, str]]:
    if path is None:
        return []
    with open(path, newline="") as file:
        header, *lines = csv.reader(file)
    assert header == ["line", "field", "reason"]
    return [(int(line), field, reason) for line, field, reason in lines]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_csv(path: Path, lines: list[list[str]]) -> Path:
    text = io.StringIO()
    csv.writer(text).writerows(lines)
    return write(path, text.getvalue())


def write_ndjson(path: Path, objects: list[dict[str, Any]]) -> Path:
    return write(path, b"".join(msgspec.json.encode(one) + b"\n" for one in objects))


async def list_all(api: httpx.AsyncClient, resource: str) -> list[dict[str, Any]]:
    """Everything of one resource, oldest first."""
    found: list[dict[str, Any]] = []
    while True:
        response = await api.get(f"/{resource}", params={"page": len(found) // 100 + 1, "limit": 100})
        assert response.status_code == 200, response.text
        found += response.json()["data"]
        if not response.json()["meta"]["hasNextPage"]:
            return sorted(found, key=lambda one: (one["createdAt"], one["id"]))


def without_ids(value: Any) -> Any:
    """The same without what differs between two companies by nature: ids, numbers and instants."""
    if isinstance(value, list):
        return [without_ids(item) for item in value]
    if isinstance(value, dict):
        return {key: without_ids(item) for key, item in value.items() if key not in {"id", "createdAt", "updatedAt"}}
    return value


def read(path: Path) -> bytes:
    return path.read_bytes()
