"""The examples of both READMEs, run as they stand there, one after the other, on a real server."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.sdk.node import run_module
from tests.sdk.sample_calls import SDK

SECRET = "whsec_c2VjcmV0LW9mLXRoZS1zaG9wLWZvci10ZXN0cw=="  # the READMEs have it, too

# What the README leaves to the reader's framework: deliveries that arrive.
RECEIVE = """
from io import BytesIO

for body in (delivery.body, delivery.body + b" "):
    headers = {"HTTP_" + name.upper().replace("-", "_"): value for name, value in delivery.headers.items()}
    environ = {**headers, "CONTENT_LENGTH": str(len(body)), "wsgi.input": BytesIO(body)}
    receive(environ, lambda status, headers: print(status))
"""


def read_examples(language: str, folder: str) -> str:
    text = (SDK / folder / "README.md").read_text()
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))


@pytest.mark.smoke
def test_the_examples_of_python(installation: Installation, key: str, tmp_path: Path) -> None:
    (tmp_path / "readme.py").write_text(read_examples("python", "python") + RECEIVE)
    path = os.pathsep.join([str(SDK / "python" / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {
        "SAPA_API_KEY": key,
        "SAPA_BASE_URL": installation.address,
        "WEBHOOK_SECRET": SECRET,
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "readme.py"],
        cwd=tmp_path,
        env={**os.environ, **variables, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "+628123456797" in done.stdout
    assert "150000" in done.stdout
    assert "204 No Content" in done.stdout
    assert "400 Bad Request" in done.stdout


def test_the_examples_of_typescript(installation: Installation, key: str) -> None:
    code = read_examples("ts", "typescript")
    output = run_module(code, SAPA_API_KEY=key, SAPA_BASE_URL=installation.address)
    assert "+628123456798" in output
    assert "WindowClosed" in output
    assert output.endswith("204\n")
