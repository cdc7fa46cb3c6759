"""Runs TypeScript with the Node that Playwright brings, which needs no compiler for it, and with Deno and Bun."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import playwright

from tests.sdk.sample_calls import SDK

NODE = Path(playwright.__file__).parent / "driver" / "node"
SOURCES = SDK / "typescript" / "src"
PACKAGES = Path(sys.prefix) / "openapi" / "node_modules"
"""What `scripts/test-tools openapi` installs, which `make test-long` runs: Deno and Bun for this machine, too."""
_LOADER = """
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

const files = { "@sapa/client": "index.ts", "@sapa/client/testing": "testing.ts" };
registerHooks({
  resolve: (name, context, next) =>
    name in files
      ? { url: pathToFileURL(`${process.env.SAPA_SOURCES}/${files[name]}`).href, shortCircuit: true }
      : next(name, context),
});
"""


def run_module(code: str, *arguments: str, **variables: str) -> str:
    """The output of a module that imports `@sapa/client` from its sources."""
    with TemporaryDirectory() as folder:
        loader = Path(folder) / "loader.mjs"
        loader.write_text(_LOADER)
        return _run(Path(folder), [NODE, "--no-warnings", "--import", loader.as_uri()], code, *arguments, **variables)


def run_with_deno(code: str, **variables: str) -> str:
    """With no rights but to call servers and to read its environment."""
    with TemporaryDirectory() as folder:
        imports = Path(folder) / "imports.json"
        imports.write_text(json.dumps({"imports": {"@sapa/client": (SOURCES / "index.ts").as_uri()}}))
        rights = ["--no-prompt", "--allow-net", "--allow-env"]
        return _run(Path(folder), [_find("@deno/*/deno"), "run", *rights, "--import-map", imports], code, **variables)


def run_with_bun(code: str, **variables: str) -> str:
    with TemporaryDirectory() as folder:
        paths = {"@sapa/client": [str(SOURCES / "index.ts")]}
        (Path(folder) / "tsconfig.json").write_text(json.dumps({"compilerOptions": {"paths": paths}}))
        return _run(Path(folder), [_find("@oven/*/bin/bun"), "run"], code, **variables)


def _find(pattern: str) -> Path:
    return min(PACKAGES.glob(pattern))


def _run(folder: Path, command: Sequence[str | Path], code: str, *arguments: str, **variables: str) -> str:
    module = folder / "module.ts"
    module.write_text(code)
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "SAPA_SOURCES": str(SOURCES), **variables}
    done = subprocess.run(
        [*command, module, *arguments],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
