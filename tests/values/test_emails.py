import subprocess
import sys
from pathlib import Path

import pytest

from sapa.values.emails import BadEmail, parse_email

SOURCE = Path(__file__).parents[2] / "src" / "sapa"

RECIPIENT = """
from sapa.values.company import Company
from sapa.messaging.channels.identities import EMAIL
from sapa.messaging.sending.preflight import parse_recipient

print(parse_recipient("ayu@toko.local", None, Company(1, "live", "ID", "IDR"), [EMAIL]).value)
"""


def run_alone(text: str) -> str:
    """What it prints in a process that imports nothing else."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_recipients_do_not_depend_on_what_else_is_imported() -> None:
    assert run_alone(RECIPIENT) == "ayu@toko.local"


@pytest.mark.parametrize("name", ["toko.local", "shop.test", "x.invalid", "x.onion", "1.in-addr.arpa"])
def test_domains_of_special_use_are_accepted(name: str) -> None:
    assert parse_email(f"ayu@{name.upper()}") == f"ayu@{name}"


@pytest.mark.parametrize("text", ["ayu", "ayu@", "@toko.local", "ayu@toko..local", "a b@example.com"])
def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(BadEmail):
        parse_email(text)


@pytest.mark.parametrize("text", ["ayu@localhost", "ayu@test", "ayu@com", "ayu@LOCALHOST", "ayu@xn--p1ai", "ayu@рф"])
def test_a_domain_without_a_dot_is_refused(text: str) -> None:
    with pytest.raises(BadEmail, match="no dot"):
        parse_email(text)


def test_one_module_has_the_rule() -> None:
    users = [path.name for path in SOURCE.rglob("*.py") if "email_validator" in path.read_text()]
    assert users == ["emails.py"]
