"""`sapa company`, `key` and `clock` beside a running server: output for programs, output for people, and errors."""

from typing import Any
from uuid import uuid4

import pytest

from tests.cli.command import Outcome, sapa
from tests.conftest import Installation
from tests.http.wire import Reply, send

ALL_SCOPES = 12


@pytest.fixture
def company(installation: Installation) -> dict[str, Any]:
    created: dict[str, Any] = sapa(installation.data, "company", "create", f"Toko {uuid4()}", "--json").json()
    return created


def create_key(installation: Installation, company_id: int, *more: str) -> Outcome:
    return sapa(installation.data, "key", "create", "--company", str(company_id), "--name", "shop", *more)


def call(installation: Installation, key: str, method: str = "GET") -> Reply:
    return send(installation, method, "/customers", [("x-api-key", key), ("content-type", "application/json")])


def test_a_new_company_is_printed_with_its_name_and_ids(installation: Installation) -> None:
    name = f"Toko {uuid4()}"
    created = sapa(installation.data, "company", "create", name, "--json").json()
    assert set(created) == {"name", "liveCompanyId", "testCompanyId"}
    assert created["name"] == name
    assert isinstance(created["liveCompanyId"], int)
    assert created["liveCompanyId"] != created["testCompanyId"]
    rows = [row for row in sapa(installation.data, "company", "list", "--json").json() if row["name"] == name]
    assert [(row["companyId"], row["environment"], row["region"], row["currency"]) for row in rows] == [
        (created["liveCompanyId"], "live", "ID", "IDR"),
        (created["testCompanyId"], "test", "ID", "IDR"),
    ]


def test_a_new_key_works_at_once_in_its_companys_environment(
    installation: Installation, company: dict[str, Any]
) -> None:
    for id, prefix in ((company["liveCompanyId"], "svc_live_"), (company["testCompanyId"], "svc_test_")):
        created = create_key(installation, id, "--all-scopes", "--json").json()
        assert created["id"].startswith("key_")
        assert created["key"].startswith(prefix)
        assert len(created["scopes"]) == ALL_SCOPES
        assert (created["products"], created["rateLimit"], created["companyId"]) == (["CRM"], 100, id)
        reply = call(installation, created["key"])
        assert reply.status == 200
        assert reply.headers["ratelimit-limit"] == "100"


def test_a_key_has_the_scopes_it_was_created_with(installation: Installation, company: dict[str, Any]) -> None:
    options = ["--scope", "orders:READ", "--scope", "customers:READ", "--rate-limit", "7", "--json"]
    options += ["--allow-ip", "127.0.0.1", "--allow-ip", "2001:db8::/64", "--allow-ip", "10.1.2.3/8"]
    options += ["--expires-at", "2999-01-31T00:00:00Z"]
    created = create_key(installation, company["liveCompanyId"], *options).json()
    assert created["scopes"] == ["customers:READ", "orders:READ"]
    assert created["allowList"] == ["127.0.0.1/32", "2001:db8::/64", "10.0.0.0/8"]
    assert created["expiresAt"] == "2999-01-31T00:00:00.000Z"
    assert call(installation, created["key"]).headers["ratelimit-limit"] == "7"
    assert call(installation, created["key"], "POST").code == "INSUFFICIENT_SCOPE"


def test_rotate_revoke_and_list(installation: Installation, company: dict[str, Any]) -> None:
    old = create_key(installation, company["testCompanyId"], "--all-scopes", "--json").json()
    new = sapa(installation.data, "key", "rotate", old["id"], "--json").json()
    assert new["id"] != old["id"]
    assert call(installation, old["key"]).headers["sunset"]
    assert call(installation, new["key"]).status == 200
    sapa(installation.data, "clock", "advance", "25h", "--company", str(company["testCompanyId"]), "--json").json()
    revoked = sapa(installation.data, "key", "revoke", new["id"], "--json").json()
    assert (revoked["id"], revoked["status"]) == (new["id"], "revoked")
    assert [call(installation, key["key"]).status for key in (old, new)] == [401, 401]
    listed = sapa(installation.data, "key", "list", "--company", str(company["testCompanyId"]), "--json")
    assert [key["id"] for key in listed.json()] == [old["id"], new["id"]]
    assert listed.json()[0]["replacedBy"] == new["id"]
    for key in (old, new):
        assert key["key"] not in listed.out
        assert {"lastFour": key["key"][-4:], "prefix": "svc_test_"}.items() <= next(
            row for row in listed.json() if row["id"] == key["id"]
        ).items()


def test_the_clock_of_a_test_environment(installation: Installation, company: dict[str, Any]) -> None:
    at = ["--company", str(company["testCompanyId"]), "--json"]
    offsets = [
        sapa(installation.data, "clock", *command, *at).json()["clockOffsetSeconds"]
        for command in (["show"], ["advance", "90s"], ["advance", "30m"], ["advance", "7d"], ["show"], ["reset"])
    ]
    week = 7 * 24 * 3600
    assert offsets == [0, 90, 1890, 1890 + week, 1890 + week, 0]


def test_people_get_tables_and_see_a_key_once(installation: Installation, company: dict[str, Any]) -> None:
    created = create_key(installation, company["liveCompanyId"], "--all-scopes")
    assert created.code == 0
    (key,) = [word for word in created.out.split() if word.startswith("svc_live_")]
    assert call(installation, key).status == 200
    assert "shown only once" in created.out
    listed = sapa(installation.data, "key", "list", "--company", str(company["liveCompanyId"]))
    assert listed.code == 0
    assert key not in listed.out
    assert f"svc_live_…{key[-4:]}" in listed.out


def test_any_name_can_be_shown_to_people(installation: Installation) -> None:
    names = [
        f"{name} {uuid4().hex[:8]}" for name in ("Toko [/b]", "[red]Toko", "Toko :smile:", "[link=x]", "日本", "[/]")
    ]
    for name in names:
        created = sapa(installation.data, "company", "create", name)
        assert (created.code, created.err) == (0, "")
        assert name in created.out
    listed = sapa(installation.data, "company", "list")
    assert [name for name in names if name not in listed.out] == []


def test_a_key_of_a_company_with_markup_in_its_name_is_shown(
    installation: Installation, company: dict[str, Any]
) -> None:
    options = ["--company", str(company["liveCompanyId"]), "--name", "shop [/b]", "--all-scopes"]
    created = sapa(installation.data, "key", "create", *options)
    assert created.code == 0
    assert "svc_live_" in created.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["key", "rotate", "key_unknown"], "No key has this id. List the keys to see their ids."),
        (["key", "revoke", "key_unknown", "--json"], "No key has this id. List the keys to see their ids."),
        (
            ["key", "create", "--company", "999999999", "--name", "x", "--all-scopes", "--json"],
            "No company has this id; `sapa company list` shows them.",
        ),
        (["clock", "show", "--company", "999999999"], "No company has this id; `sapa company list` shows them."),
        (["company", "create", "  "], "name: must have 1 to 100 printable characters"),
        (["company", "create", "X", "--region", "XX"], "region: must be an ISO 3166 country code, such as ID"),
    ],
)
def test_an_error_is_one_sentence(installation: Installation, arguments: list[str], says: str) -> None:
    outcome = sapa(installation.data, *arguments)
    assert outcome.sentence() == says
    assert outcome.out == ""


def test_a_taken_name_is_one_sentence(installation: Installation, company: dict[str, Any]) -> None:
    outcome = sapa(installation.data, "company", "create", company["name"], "--json")
    assert outcome.sentence() == "A company with this name already exists."


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--scope", "orders:EAT"], "scope: 'orders:EAT' is unknown; use one of customers:READ"),
        (["--all-scopes", "--product", "ERP"], "product: 'ERP' is unknown; use one of CRM"),
        (["--all-scopes", "--allow-ip", "10.0.0.0/7"], "allow-ip: '10.0.0.0/7' is too broad"),
        (["--all-scopes", "--rate-limit", "0"], "rate-limit: must be from 1 to 1000000 requests a minute"),
        (["--all-scopes", "--expires-at", "soon"], "expires-at: must be an ISO 8601 date-time"),
    ],
)
def test_a_key_that_cannot_be_is_refused_in_one_sentence(
    installation: Installation, company: dict[str, Any], options: list[str], says: str
) -> None:
    assert create_key(installation, company["liveCompanyId"], *options).sentence().startswith(says)


def test_a_list_of_an_unknown_company_is_refused(installation: Installation) -> None:
    for noun in ("key", "agent"):
        message = sapa(installation.data, noun, "list", "--company", str(2**62)).sentence()
        assert message.startswith("No company has this id")


def test_a_company_id_of_any_size_is_no_reason_to_doubt_the_database(installation: Installation) -> None:
    outcome = create_key(installation, 10**30, "--all-scopes")
    assert outcome.code in {1, 2}
    assert "Traceback" not in outcome.err
    assert "database" not in outcome.err


def test_a_live_clock_is_left_alone_and_a_rotated_key_is_not_rotated_again(
    installation: Installation, company: dict[str, Any]
) -> None:
    live = str(company["liveCompanyId"])
    refused = sapa(installation.data, "clock", "advance", "1h", "--company", live)
    assert refused.sentence() == "Only a test environment's clock can be moved; this is a live one."
    key = create_key(installation, company["liveCompanyId"], "--all-scopes", "--json").json()
    assert sapa(installation.data, "key", "rotate", key["id"], "--json").code == 0
    again = sapa(installation.data, "key", "rotate", key["id"], "--json")
    assert again.sentence() == "This key is revoked, expired or already rotated. Create a new key."


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["key"],
        ["key", "create", "--company", "1", "--name", "x"],
        ["key", "create", "--company", "one", "--name", "x", "--all-scopes"],
        ["key", "create", "--name", "x", "--all-scopes"],
        ["key", "list", "--jason"],
        ["clock", "advance", "soon", "--company", "1"],
        ["clock", "advance", "-1h", "--company", "1"],
        ["company", "create"],
    ],
)
def test_a_command_that_is_not_understood_has_exit_code_2_and_says_so(
    installation: Installation, arguments: list[str]
) -> None:
    outcome = sapa(installation.data, *arguments)
    assert outcome.code == 2
    assert "Traceback" not in outcome.err
    assert "Usage" in outcome.err + outcome.out
