"""Area files: four CSV lists in a package's tarball, a zip or a folder, read without extracting."""

import csv
import tarfile
import zipfile
from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha512
from io import BytesIO, StringIO
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from sapa.shipping.areas.types import AreaRow, UnusableAreas

LISTS = {"provinces.csv": 2, "regencies.csv": 4, "districts.csv": 6, "villages.csv": 10}
"""The lists from the widest level to the narrowest, and the number of digits of their codes. Islands are left out."""

PUBLISHED = {
    "PhNSIl5T7swVwwWxJOFMtCaeHAF9TUu0HLDf+36EIWZro9j7au83AFIJiBQGL+iRsBDA2OlpJ5fjiqxNYndzOQ==": "idn-area-data 4.0.1",
}
"""Digests of reviewed tarballs."""

ZIP_COLUMNS = ("postal_code", "zip", "kodepos")
"""A list may have one of them; idn-area-data has none."""

MAX_BYTES = 64 * 1_048_576
_LONGEST_NAME = 200
_MEMBERS = (*LISTS, "package.json", "LICENSE.md")


class AreaFile(Struct, frozen=True):
    name: str
    sha512: str
    is_published: bool
    """Whether it is, byte for byte, a reviewed file."""
    licence: str | None
    """The licence text inside the file."""
    lists: Mapping[str, bytes]


def read_area_file(path: Path) -> AreaFile:
    """Raises UnusableAreas, or OSError if the file cannot be read."""
    if path.is_dir():
        members = _read_folder(path)
        content = b"".join(members.get(name, b"") for name in LISTS)
    else:
        content = path.read_bytes()
        members = _read_archive(content)
    if missing := [name for name in LISTS if name not in members]:
        raise UnusableAreas(f"{path.name} lacks {', '.join(missing)}; idn-area-data has them under package/data.")
    digest = b64encode(sha512(content).digest()).decode()
    licence = members.get("LICENSE.md")
    return AreaFile(
        name=PUBLISHED.get(digest) or _read_title(members.get("package.json")) or path.name,
        sha512=digest,
        is_published=digest in PUBLISHED,
        licence=licence.decode(errors="replace") if licence else None,
        lists={name: members[name] for name in LISTS},
    )


def parse_areas(file: AreaFile) -> list[AreaRow]:
    """Every area once and after its parent; raises UnusableAreas with the offending line."""
    codes = {0}
    rows: list[AreaRow] = []
    for level, (name, digits) in enumerate(LISTS.items(), 1):
        count = len(rows)
        for line, row in _parse_list(name, file.lists[name], level, digits):
            if row.code in codes or row.parent not in codes:
                problem = "appears twice" if row.code in codes else "has no parent in the list before"
                raise UnusableAreas(f"{name}, line {line}: the code {row.code} {problem}.")
            codes.add(row.code)
            rows.append(row)
        if len(rows) == count:
            raise UnusableAreas(f"{name} contains no areas.")
    return rows


def _parse_list(name: str, content: bytes, level: int, digits: int) -> Iterator[tuple[int, AreaRow]]:
    try:
        lines = csv.DictReader(StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        for record in lines:
            code, text = (record.get("code") or "").replace(".", ""), (record.get("name") or "").strip()
            if not (code.isascii() and code.isdigit() and len(code) == digits and 0 < len(text) <= _LONGEST_NAME):
                raise UnusableAreas(f"{name}, line {lines.line_num}: expected a code of {digits} digits and a name.")
            parent = int(code[: _parent_digits(digits)] or 0)
            yield lines.line_num, AreaRow(int(code), level, parent, text, _read_zip_code(record))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnusableAreas(f"{name} cannot be read: {error}.") from None


def _read_zip_code(record: Mapping[str, str | None]) -> str | None:
    """From an optional column; anything but five digits is left out."""
    zip = next((value for name in ZIP_COLUMNS if (value := (record.get(name) or "").strip())), "")
    return zip if len(zip) == 5 and zip.isascii() and zip.isdigit() else None


def _parent_digits(digits: int) -> int:
    return {2: 0, 4: 2, 6: 4, 10: 6}[digits]


def _read_title(package: bytes | None) -> str | None:
    try:
        manifest = msgspec.json.decode(package or b"", type=dict[str, object])
    except msgspec.DecodeError:
        return None
    return f"{manifest.get('name', 'areas')} {manifest.get('version', '')}".strip()[:_LONGEST_NAME]


def _read_folder(path: Path) -> dict[str, bytes]:
    folders = (path, path / "data", path / "package" / "data", path / "package")
    found = {}
    for name in _MEMBERS:
        file = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if file is not None:
            with file.open("rb") as stream:
                found[name] = _read_bounded(name, stream)
    return found


def _read_archive(content: bytes) -> dict[str, bytes]:
    try:
        if zipfile.is_zipfile(BytesIO(content)):
            return _read_zip(content)
        return _read_tarball(content)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError):
        raise UnusableAreas("The file is neither a package's tarball nor a zip, or it is damaged.") from None


def _read_tarball(content: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=BytesIO(content), mode="r:*") as archive:
        for member in archive:
            name = _find_member(member.name)
            stream = archive.extractfile(member) if name and member.isfile() else None
            if name and stream:
                found[name] = _read_bounded(name, stream)
    return found


def _read_zip(content: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with zipfile.ZipFile(BytesIO(content)) as archive:
        for path in archive.namelist():
            if name := _find_member(path):
                with archive.open(path) as stream:
                    found[name] = _read_bounded(name, stream)
    return found


def _find_member(path: str) -> str | None:
    """Lists from any folder; package.json and LICENSE.md only from the package's own."""
    folder, _, name = path.rpartition("/")
    if name in LISTS:
        return name
    if name == "package.json":
        return name if folder in {"", "package"} else None
    return name if name == "LICENSE.md" and folder.rpartition("/")[2] == "data" else None


def _read_bounded(name: str, stream: IO[bytes]) -> bytes:
    content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UnusableAreas(f"{name} is larger than {MAX_BYTES:,} bytes.")
    return content
