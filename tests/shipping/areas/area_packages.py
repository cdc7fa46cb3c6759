"""Small area packages: the four lists in a tarball like the published one, with areas of our own."""

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

HEADERS = {
    "provinces": "code,name",
    "regencies": "code,province_code,name",
    "districts": "code,regency_code,name",
    "villages": "code,district_code,name",
}

PLACES = {
    "11": "Utara",
    "12": "Selatan",
    "11.01": "Kabupaten Bukit",
    "11.71": "Kota Pantai",
    "12.01": "Kabupaten Lembah",
    "11.01.01": "Bukit Atas",
    "11.71.01": "Pantai Barat",
    "12.01.01": "Lembah Dalam",
    "11.01.01.2001": "Sidomulyo",
    "11.01.01.2002": 'Desa "Baru", Atas',
    "11.71.01.1001": "Kampung Élok",
    "12.01.01.2001": "Sidomulyo",
}
"""Code → name, of every level."""


def build_lists(places: Mapping[str, str] = PLACES) -> dict[str, bytes]:
    """The files of package/data."""
    lists = {name: [header] for name, header in HEADERS.items()}
    for code, name in places.items():
        level = list(HEADERS)[code.count(".")]
        parent = code.rpartition(".")[0]
        quoted = '"' + name.replace('"', '""') + '"' if set(name) & set(',"') else name
        lists[level].append(",".join([code, parent, quoted] if parent else [code, quoted]))
    return {f"{name}.csv": ("\n".join(lines) + "\n").encode() for name, lines in lists.items()}


def write_tarball(path: Path, lists: Mapping[str, bytes], version: str = "0.0.1") -> Path:
    """As `npm pack` makes it, islands included."""
    package = {"name": "small-area-data", "version": version, "license": "MIT"}
    files = {
        "package/package.json": msgspec.json.encode(package),
        "package/LICENSE.md": b"MIT\n",
        "package/data/LICENSE.md": b"# ODC Open Database License (ODbL)\n",
        "package/data/islands.csv": b"code,regency_code,coordinate,is_populated,is_outermost_small,name\n"
        b"11.71.40001,11.71,,0,0,Pulau Kecil\n",
        **{f"package/data/{name}": content for name, content in lists.items()},
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def write_zip(path: Path, lists: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in lists.items():
            archive.writestr(f"data/{name}", content)
    return path


def write_folder(path: Path, lists: Mapping[str, bytes]) -> Path:
    path.mkdir()
    for name, content in lists.items():
        (path / name).write_bytes(content)
    return path
