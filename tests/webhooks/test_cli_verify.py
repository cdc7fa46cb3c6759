"""`sapa webhook verify`: what is wrong with a request, and that nothing is."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sapa.webhooks.signing import build_headers
from tests.cli.command import Outcome, sapa

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
OTHER = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
BODY = '{"id":"cust_1","firstName":"Ayu","tags":["vip"],"note":"café"}'.encode()
NOW = 1_700_000_000


class Case:
    """A request as somebody brings it to the debugger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.body = BODY
        self.headers = build_headers([SECRET], "evt_1", "customer.created", BODY, NOW)
        self.secrets = [SECRET]
        self.at = NOW

    def run(self, *more: str) -> Outcome:
        (self.folder / "body").write_bytes(self.body)
        headers = [item for name, value in self.headers.items() for item in ("--header", f"{name}: {value}")]
        secrets = [item for secret in self.secrets for item in ("--secret", secret)]
        return sapa(
            self.folder / "unused", "webhook", "verify", *secrets, *headers, "--body", str(self.folder / "body"),
            "--at", str(self.at), *more,
        )  # fmt: skip

    def sign(self, body: bytes, t: int = NOW) -> None:
        self.headers = build_headers([SECRET], "evt_1", "customer.created", body, t)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_a_good_request_is_valid(case: Case) -> None:
    outcome = case.run()
    assert (outcome.code, outcome.out) == (0, "✓ The signature is valid.\n")
    assert case.run("--json").json() == {"valid": True, "problems": []}
    assert not (case.folder / "unused").exists(), "it needs no database"


def test_during_a_rotation_either_secret_is_accepted(case: Case) -> None:
    case.headers = build_headers([OTHER, SECRET], "evt_1", "customer.created", BODY, NOW)
    for secrets in ([SECRET], [OTHER], [OTHER, SECRET]):
        case.secrets = secrets
        assert case.run().code == 0


def change_secret(case: Case) -> None:
    case.secrets = [OTHER]


def pad_secret(case: Case) -> None:
    case.secrets = [SECRET + " "]


def reprint_body(case: Case) -> None:
    case.body = json.dumps(json.loads(BODY), indent=2).encode()


def change_body(case: Case) -> None:
    case.body = BODY.replace(b"Ayu", b"Ibu")


def wait_too_long(case: Case) -> None:
    case.at = NOW + 3600


def come_from_the_future(case: Case) -> None:
    case.at = NOW - 3600


def count_milliseconds(case: Case) -> None:
    case.sign(BODY, NOW * 1000)


def drop_header(case: Case) -> None:
    case.headers = {name: value for name, value in case.headers.items() if "Signature" not in name}


def rename_header(case: Case) -> None:
    case.headers = {name.replace("-", "_").upper(): value for name, value in case.headers.items()}


def cut_signature(case: Case) -> None:
    case.headers["X-Service-Webhook-Signature"] = case.headers["X-Service-Webhook-Signature"][:-10]


def swap_id(case: Case) -> None:
    case.headers["X-Service-Webhook-Id"] = "evt_2"


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (change_secret, "secret"),
        (pad_secret, "spaces or a line break"),
        (reprint_body, "serialised again"),
        (change_body, "no signature matches"),
        (wait_too_long, "too old"),
        (come_from_the_future, "in the future"),
        (count_milliseconds, "milliseconds"),
        (drop_header, "missing"),
        (rename_header, "renamed"),
        (cut_signature, "cut off"),
        (swap_id, "id"),
    ],
)
def test_problems_are_reported_with_exit_code_1(case: Case, spoil: object, told: str) -> None:
    assert callable(spoil)
    spoil(case)
    outcome = case.run()
    assert outcome.code == 1
    assert told in outcome.out
    assert outcome.out.startswith("✗ ")
    assert "Traceback" not in outcome.err
    report = json.loads(case.run("--json").out)
    assert report["valid"] is False
    assert told in " ".join(report["problems"])


@pytest.mark.long
@pytest.mark.processes
def test_headers_can_come_from_a_file_and_the_body_from_standard_input(tmp_path: Path) -> None:
    """As copied from a proxy's log: the request's first line stands above its headers."""
    headers = build_headers([SECRET], "evt_1", "customer.created", BODY, int(time.time()))
    lines = ["POST /hook HTTP/1.1", "Host: shop.example:8080", *(f"{name}: {text}" for name, text in headers.items())]
    (tmp_path / "headers").write_text("\r\n".join([*lines, "", ""]))
    command = ["webhook", "verify", "--secret", SECRET, "--headers", str(tmp_path / "headers"), "--body", "-"]
    done = subprocess.run([sys.executable, "-m", "sapa", *command], input=BODY, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    spoilt = subprocess.run([sys.executable, "-m", "sapa", *command], input=b"", capture_output=True, timeout=60)
    assert spoilt.returncode == 1
    assert "empty" in spoilt.stdout.decode()


@pytest.mark.parametrize("moment", ["nan", "inf"])
def test_an_invalid_time_is_refused(case: Case, moment: str) -> None:
    assert case.run("--at", moment).code == 2


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    outcome = sapa(tmp_path, "webhook", "verify", "--secret", SECRET, "--body", str(tmp_path / "none"))
    assert outcome.code == 2
    assert "Traceback" not in outcome.err
