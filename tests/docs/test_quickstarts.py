"""The quick starts, run as they stand there on a real server; what they print is what they say."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import playwright
import pytest

from docs.generator.pages import ROOT
from sapa.db.pool import Database
from sapa.webhooks.sender import Target, WebhookMessage
from sapa.webhooks.signing import new_secret
from tests.conftest import Installation, free_port
from tests.factories import Environments, make_key
from tests.webhooks.zoo import sending

QUICKSTARTS = ROOT / "docs" / "quickstart"
GUIDE = ROOT / "docs" / "webhooks.md"
PYTHON_SDK = ROOT / "sdk" / "python" / "src"
TYPESCRIPT_SDK = ROOT / "sdk" / "typescript" / "src"
NODE = Path(playwright.__file__).parent / "driver" / "node"
# The package as its sources: a folder of installed packages would need it compiled.
LOADER = """
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
const address = pathToFileURL(`${process.env.SDK}/index.ts`).href;
registerHooks({
  resolve: (name, context, next) =>
    name === "@sapa/client" ? { url: address, shortCircuit: true } : next(name, context),
});
"""
CUSTOMER = b'{"id":"cust_1","externalId":null,"email":"ayu@example.com","phoneNumber":null,"firstName":"Ayu"'
CUSTOMER += b',"lastName":null,"imageUrl":null,"tags":[],"addresses":[],"additionalData":{},"subscriptionStatus":[]'
CUSTOMER += b',"createdAt":"2026-01-31T09:30:00.000Z","updatedAt":"2026-01-31T09:30:00.000Z"}'

# Node comes with Playwright and Python runs this; the others are in Debian, and `make test-long` installs them.
needs_php = [pytest.mark.long, pytest.mark.skipif(shutil.which("php") is None, reason="php is not installed")]
needs_go = [pytest.mark.long, pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")]
needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")


@pytest.fixture
async def test_key(database: Database, company: Environments) -> str:
    return (await make_key(database, company.test)).raw


def read_blocks(file: Path, info: str) -> list[str]:
    """The fenced blocks that begin with these words."""
    return re.findall(rf"^```{info}\n(.*?)^```$", file.read_text(), re.DOTALL | re.MULTILINE)


def build_command(language: str, folder: Path, code: str) -> list[str]:
    """The command that runs a program, written into the folder."""
    names = {"sh": "start.sh", "python": "start.py", "ts": "start.mts", "php": "start.php", "go": "start.go"}
    program = folder / names[language]
    program.write_text(code)
    (folder / "loader.mjs").write_text(LOADER)
    return {
        "sh": ["bash", "-eu", "-o", "pipefail", str(program)],
        "python": [sys.executable, "-W", "error", str(program)],
        "ts": [str(NODE), "--no-warnings", "--import", (folder / "loader.mjs").as_uri(), str(program)],
        "php": ["php", "-d", "error_reporting=-1", "-d", "display_errors=stderr", str(program)],
        "go": ["go", "run", str(program)],
    }[language]


def build_environ(folder: Path, **variables: str) -> dict[str, str]:
    paths = [str(PYTHON_SDK), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(paths), "SDK": str(TYPESCRIPT_SDK), "HOME": str(folder)}
    return {"PATH": os.environ["PATH"], **own, **variables}


def matches(output: str, shown: str) -> bool:
    """Whether a program printed what the page shows, where … stands for anything."""
    return re.fullmatch(".+?".join(map(re.escape, shown.split("…"))), output) is not None


@pytest.mark.parametrize(
    ("page", "language"),
    [
        pytest.param("curl", "sh", marks=needs_jq),
        ("python", "python"),
        ("typescript", "ts"),
        pytest.param("php", "php", marks=needs_php),
        pytest.param("go", "go", marks=needs_go),
    ],
)
def test_a_quick_start_prints_what_it_says(
    page: str, language: str, installation: Installation, test_key: str, tmp_path: Path
) -> None:
    file = QUICKSTARTS / f"{page}.md"
    done = subprocess.run(
        build_command(language, tmp_path, "\n".join(read_blocks(file, f"{language} run"))),
        cwd=tmp_path,
        env=build_environ(tmp_path, SAPA_BASE_URL=installation.address, SAPA_API_KEY=test_key),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert matches(done.stdout, "".join(read_blocks(file, "text output"))), done.stdout


def test_the_quick_starts_can_follow_each_other_on_one_server() -> None:
    """Each has its own customer and its own idempotency keys, and so do the overview and the READMEs of the SDKs."""
    pages = [*sorted(QUICKSTARTS.glob("*.md")), ROOT / "README.md", *sorted((ROOT / "sdk").glob("*/README.md"))]
    word = re.compile(r"[a-z]+@example\.com|\+628\d+|[a-z]+-(?:10\d\d|17)\b")
    words = [set(word.findall(_read_start(page))) for page in pages]
    assert all(len(found) >= 4 for found in words)
    assert len(set().union(*words)) == sum(map(len, words))


def _read_start(page: Path) -> str:
    return re.split(r"^## (?:Receive webhooks|Webhooks)$", page.read_text(), flags=re.MULTILINE)[0]


def test_other_output_is_seen() -> None:
    assert matches("cust_1 +62\nsent\n", "cust_… +62\nsent\n")
    assert not matches("cust_1 +63\nsent\n", "cust_… +62\nsent\n")
    assert not matches("cust_ +62\nsent\n", "cust_… +62\nsent\n")


@contextmanager
def receiving(language: str, code: str, folder: Path, secret: str) -> Iterator[str]:
    """A receiver of the pages; yields its address."""
    port = free_port()
    command = build_command(language, folder, code)
    if language == "php":
        command = [*command[:-1], "-S", f"127.0.0.1:{port}", command[-1]]
    with (folder / "output.txt").open("w+") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=build_environ(folder, WEBHOOK_SECRET=secret, PORT=str(port)),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            wait_for(folder / "output.txt", str(port), process)
            yield f"http://127.0.0.1:{port}/"
        finally:
            os.killpg(process.pid, 9)  # `go run` starts the program as its child
            process.wait()


def wait_for(file: Path, text: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while text not in file.read_text():
        assert process.poll() is None, file.read_text()
        assert time.monotonic() < deadline, file.read_text()
        time.sleep(0.05)


async def deliver(url: str, *secrets: str) -> int | None:
    async with sending() as sender:
        message = WebhookMessage("evt_1", "customer.created", CUSTOMER)
        return (await sender.send(Target(url, {}, list(secrets)), message)).status


@pytest.mark.processes
@pytest.mark.parametrize(
    ("file", "language"),
    [
        pytest.param(QUICKSTARTS / "python.md", "python", id="python"),
        pytest.param(QUICKSTARTS / "typescript.md", "ts", id="typescript"),
        pytest.param(GUIDE, "php", marks=needs_php, id="php"),
        pytest.param(GUIDE, "go", marks=needs_go, id="go"),
    ],
)
async def test_a_receiver_tells_genuine_from_forged(file: Path, language: str, tmp_path: Path) -> None:
    secret, other = new_secret(), new_secret()
    (code,) = read_blocks(file, f"{language} server")
    with receiving(language, code, tmp_path, secret) as url:
        assert await deliver(url, secret) == 204
        assert await deliver(url, other, secret) == 204
        assert await deliver(url, other) == 400
    if file != GUIDE:
        assert (tmp_path / "output.txt").read_text().count("new customer: ayu@example.com") == 2
