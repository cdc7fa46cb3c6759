"""What an installation consists of can be listed and looked up: every package is locked, with its hashes."""

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

REPOSITORY = Path(__file__).parents[2]
PINNED = re.compile(r"^([a-z0-9._-]+)==([^\s;]+)", re.MULTILINE)


def read_recipe(target: str) -> str:
    """The commands of a target of the Makefile."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", ["run", "dev", "site"])
def test_every_package_is_locked_with_hashes(name: str) -> None:
    text = (REPOSITORY / "requirements" / f"{name}.txt").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert [line for line in lines if not PINNED.match(line) or "--hash=sha256:" not in line] == []


def test_what_runs_is_what_is_tested() -> None:
    texts = {name: (REPOSITORY / "requirements" / f"{name}.txt").read_text() for name in ("run", "dev", "site")}
    run, dev, site = (set(PINNED.findall(text)) for text in texts.values())
    assert run <= dev
    assert site <= dev


def test_the_audit_covers_both_lists_and_installs_nothing() -> None:
    recipe = read_recipe("audit")
    for name in ("run", "dev"):
        assert re.search(rf"pip-audit .*--disable-pip --require-hashes -r requirements/{name}\.txt", recipe)
    assert "audit" not in read_recipe("test")


@pytest.mark.long
def test_the_bill_of_materials_lists_every_package_with_its_hashes(tmp_path: Path) -> None:
    recipe = read_recipe("sbom").split()
    arguments = recipe[recipe.index("$(BIN)/cyclonedx-py") + 1 :]
    file = tmp_path / "sbom.json"
    command = [sys.executable, "-m", "cyclonedx_py", *(str(file) if one == "sbom.json" else one for one in arguments)]
    subprocess.run(command, check=True, cwd=REPOSITORY, capture_output=True)
    bill = msgspec.json.decode(file.read_bytes())
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "sapa"
    listed = {(component["name"], component["version"]) for component in bill["components"]}
    assert listed == set(PINNED.findall((REPOSITORY / "requirements" / "run.txt").read_text()))
    hashed = [one for one in bill["components"] if one["externalReferences"][0]["hashes"]]
    assert len(hashed) == len(bill["components"])
