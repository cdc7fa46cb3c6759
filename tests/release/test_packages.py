"""A release: what the wheel contains, that it is the same each time, and that it runs where nothing else is."""

import email
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

import httpx
import msgspec
import pytest

from sapa import __version__
from tests.conftest import TLS, free_port, wait_until_ready
from tests.conftest import Installation as Running

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sapa"

pytestmark = pytest.mark.processes


def run(*command: str | Path, folder: Path, **variables: str) -> str:
    environ = {**os.environ, **variables}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build_wheel(folder: Path) -> Path:
    """The wheel of a copy of the sources, with a page in place of the documentation."""
    shutil.copytree(SOURCE, folder / "src" / "sapa", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copyfile(ROOT / name, folder / name)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("*.png"))  # parts may be included
    page = folder / "src" / "sapa" / "documentation" / "index.html"
    page.parent.mkdir()
    page.write_text("<!doctype html><title>Sapa</title>")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", folder=folder, SOURCE_DATE_EPOCH="1700000000")
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_has_every_file_of_the_product(wheel: Path) -> None:
    files = {path.relative_to(SOURCE.parent).as_posix() for path in SOURCE.rglob("*") if path.is_file()}
    files = {name for name in files if "__pycache__" not in name}
    packed = set(ZipFile(wheel).namelist())
    assert files - packed == set()
    assert "sapa/documentation/index.html" in packed
    for kind in ("db/migrations/*.sql", "console/templates/*.html", "console/static/*.css", "console/words/*.json"):
        assert any(Path(name).match(f"sapa/{kind}") for name in packed), kind
    assert not [name for name in packed if name.startswith(("tests/", "docs/", "bench/"))]


def test_the_same_sources_give_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    again = build_wheel(tmp_path)
    assert (again.name, again.read_bytes()) == (wheel.name, wheel.read_bytes())


def test_the_version_is_the_same_everywhere(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    about = email.message_from_bytes(ZipFile(wheel).read(f"sapa-{__version__}.dist-info/METADATA"))
    assert project["version"] == about["Version"] == __version__
    assert f"pip install {wheel.name}" in (ROOT / "docs" / "install.md").read_text()
    for file in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("sdk/*/README.md")]:
        named = re.findall(r"\bsapa(?:[_-](?:client|docs))?-(\d+\.\d+\.\d+)", file.read_text())
        assert set(named) <= {__version__}, file
    for file in (ROOT / "sdk").glob("typescript/package.json"):
        assert msgspec.json.decode(file.read_bytes())["version"] == __version__
    for file in (ROOT / "sdk").glob("python/src/*/_version.py"):
        assert f'"{__version__}"' in file.read_text()


def test_the_changelog_has_a_section_for_each_version() -> None:
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    dated = [section for section in sections if section != "Unreleased"]
    assert [section for section in dated if not re.fullmatch(r"\d+\.\d+\.\d+ – \d{4}-\d\d-\d\d", section)] == []
    assert sections.index("Unreleased") == 0 if "Unreleased" in sections else dated


@pytest.mark.long
def test_a_wheel_in_an_empty_environment_serves(wheel: Path, tmp_path: Path) -> None:
    """Its dependencies come from the package index, as for anybody who installs it."""
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    run(programs / "pip", "install", "--quiet", "--disable-pip-version-check", wheel, folder=tmp_path, PYTHONPATH="")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    version = subprocess.run([programs / "sapa", "--version"], env=environ, capture_output=True, text=True, check=True)
    assert version.stdout == f"{__version__}\n"

    port = free_port()
    data = tmp_path / "data"
    log = tmp_path / "serve.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [programs / "sapa", "serve", "--port", str(port), "--data", data],
            cwd=tmp_path, env=environ, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    running = Running(f"http://127.0.0.1:{port}", data, log, process)
    try:
        wait_until_ready(running)
        key = re.search(r"svc_test_\w+", log.read_text())
        assert key is not None
        with httpx.Client(base_url=running.address, verify=TLS, headers={"x-api-key": key[0]}) as client:
            made = client.post("/customer/v1/customers", json={"email": "ayu@example.com"})
            assert (made.status_code, made.json()["data"]["email"]) == (201, "ayu@example.com")
            for page in ("/", "/docs/", "/customer/v1/docs", "/console/sign-in", "/console/static/console.css"):
                assert client.get(page).status_code == 200, page
    finally:
        process.terminate()
        assert process.wait(60) == 0


@pytest.mark.long
def test_a_release_of_the_commit_is_the_same_each_time(tmp_path: Path) -> None:
    command: list[str | Path] = ["scripts/release", Path(sys.prefix) / "bin", Path(sys.prefix) / "openapi"]
    clone = tmp_path / "clone"
    run("git", "clone", "--quiet", ROOT, clone, folder=tmp_path)
    sums = []
    for _ in range(2):
        run(*command, folder=clone, PYTHONPATH=os.environ.get("PYTHONPATH", ""))
        sums.append((clone / "dist" / "SHA256SUMS").read_text())
    assert sums[0] == sums[1]
    names = {line.split("  ")[1] for line in sums[0].splitlines()}
    assert names == {
        f"sapa-{__version__}-py3-none-any.whl", f"sapa_client-{__version__}-py3-none-any.whl",
        f"sapa-client-{__version__}.tgz", f"sapa-docs-{__version__}.tar.gz", "requirements.txt", "sbom.json",
    }  # fmt: skip
    for line in sums[0].splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((clone / "dist" / name).read_bytes()).hexdigest() == digest
    assert (
        "sapa/documentation/webhooks.html"
        in ZipFile(clone / "dist" / f"sapa-{__version__}-py3-none-any.whl").namelist()
    )
    (clone / "README.md").write_text("changed")
    refused = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "the working tree has changes" in refused.stderr
