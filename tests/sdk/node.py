"""Runs TypeScript with the Node that Playwright brings, which needs no compiler for it."""

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import playwright

from tests.sdk.sample_calls import SDK

NODE = Path(playwright.__file__).parent / "driver" / "node"
SOURCES = SDK / "typescript" / "src"
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
        loader, module = Path(folder) / "loader.mjs", Path(folder) / "module.ts"
        loader.write_text(_LOADER)
        module.write_text(code)
        command: list[str | Path] = [NODE, "--no-warnings", "--import", loader.as_uri(), module, *arguments]
        environ = {"PATH": os.environ["PATH"], "SAPA_SOURCES": str(SOURCES), **variables}
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=120
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
