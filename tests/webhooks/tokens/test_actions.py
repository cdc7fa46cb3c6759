"""`sapa token`: made, listed, revoked; only a hash is kept."""

from hashlib import sha256

import httpx
import pytest

from sapa.db.pool import Database
from tests.cli.command import sapa
from tests.conftest import TLS, Installation
from tests.factories import Environments


def listen(installation: Installation, token: str | None) -> tuple[int, str]:
    """The answer's status, and the first line of the stream or the error's code."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    with httpx.stream("GET", f"{installation.address}/listen", headers=headers, timeout=120, verify=TLS) as response:
        if response.status_code != 200:
            response.read()
            return response.status_code, str(response.json()["error"]["code"])
        return 200, next(response.iter_lines())


async def test_a_token_opens_until_it_is_revoked(
    installation: Installation, database: Database, company: Environments
) -> None:
    owner = ["--company", str(company.live)]
    made = sapa(installation.data, "token", "create", *owner, "--days", "7", "--json").json()
    assert set(made) == {"id", "companyId", "createdAt", "expiresAt", "token"}
    assert made["token"].startswith("dev_")
    assert made["expiresAt"][:10] > made["createdAt"][:10]
    other = sapa(installation.data, "token", "create", *owner, "--json").json()
    assert listen(installation, made["token"]) == (200, ": ready")
    listed = sapa(installation.data, "token", "list", *owner, "--json").json()
    assert [row["id"] for row in listed] == [made["id"], other["id"]]
    assert not any("token" in row for row in listed)
    async with database.connection() as db:
        rows = await db.fetch("SELECT hash FROM developer_tokens WHERE company_id = $1", company.live)
    assert sha256(made["token"].encode()).digest() in [row["hash"] for row in rows]
    sapa(installation.data, "token", "revoke", made["id"], "--json").json()
    assert listen(installation, made["token"]) == (401, "INVALID_TOKEN")
    sapa(installation.data, "token", "revoke", other["token"]).out  # noqa: B018 - by the token itself
    assert listen(installation, other["token"]) == (401, "INVALID_TOKEN")
    assert "sapa token list" in sapa(installation.data, "token", "revoke", made["id"]).sentence()
    assert made["token"] not in installation.log.read_text()


def test_a_token_ends_by_company_time(installation: Installation, company: Environments) -> None:
    owner = ["--company", str(company.test)]
    token = sapa(installation.data, "token", "create", *owner, "--days", "2", "--json").json()["token"]
    assert listen(installation, token)[0] == 200
    sapa(installation.data, "clock", "advance", "3d", *owner, "--json").json()
    assert listen(installation, token) == (401, "INVALID_TOKEN")
    sapa(installation.data, "token", "create", *owner, "--json").json()
    assert len(sapa(installation.data, "token", "list", *owner, "--json").json()) == 1, "what expired is forgotten"


@pytest.mark.parametrize("days", ["0", "366", "-1"])
def test_days_have_bounds(installation: Installation, company: Environments, days: str) -> None:
    outcome = sapa(installation.data, "token", "create", "--company", str(company.live), "--days", days)
    assert outcome.sentence() == "days: must be from 1 to 365"


def test_a_token_of_no_company_is_reported_in_one_sentence(installation: Installation) -> None:
    assert "sapa company list" in sapa(installation.data, "token", "create", "--company", "999999999").sentence()


@pytest.mark.parametrize(
    "token", [None, "dev_", "dev_" + "x" * 40, "dev_" + "x" * 41, "svc_live_x", "dev_\t" + "x" * 39]
)
def test_without_a_token_that_works_there_is_no_stream(installation: Installation, token: str | None) -> None:
    assert listen(installation, token) == (401, "INVALID_TOKEN")
