"""Webhook endpoints by the command line: registered, changed, paused, resumed, rotated, removed."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.db.pool import Database, Tx
from sapa.events import CATALOGUE
from sapa.http.errors import Invalid
from sapa.settings import WebhookSettings
from sapa.values.sealing import Vault
from sapa.webhooks.deliveries import actions as deliveries
from sapa.webhooks.endpoints import actions, test_event
from sapa.webhooks.endpoints.fields import check_headers
from sapa.webhooks.types import EndpointNotFound, Missed, WebhookEndpointIn, WebhookEndpointPatch, WebhookLimit
from tests.cli.command import Outcome, sapa, sapa_process
from tests.conftest import Installation
from tests.factories import Environments, make_customer, make_endpoint

URL = "https://hooks.example.com/sapa"
UNKNOWN = "whe_01jc9y3q5me8w92v7x4t6r0n1k"
FIELDS = {
    "id", "companyId", "url", "events", "description", "headers", "status", "reason", "failures", "catchingUp",
    "autoResume", "suspendedAt", "nextProbeAt", "secretHint", "previousSecretUntil", "createdAt", "updatedAt",
}  # fmt: skip


@pytest.fixture
def vault(installation: Installation) -> Vault:
    return Vault(installation.server.secret_key)


def webhook(installation: Installation, *arguments: str) -> Outcome:
    return sapa(installation.data, "webhook", *arguments)


def create(installation: Installation, company_id: int, *more: str) -> Outcome:
    return webhook(installation, "create", "--company", str(company_id), "--url", URL, *more)


def show(installation: Installation, id: str) -> Any:
    return webhook(installation, "show", id, "--json").json()


async def queued(database: Database, company_id: int) -> int:
    async with database.connection() as db:
        count: int = await db.fetchval("SELECT count(*) FROM webhook_queue WHERE company_id = $1", company_id)
        return count


@pytest.mark.smoke
def test_a_new_endpoint_is_shown_with_its_secret(installation: Installation, company: Environments) -> None:
    more = ["--event", "customer.created", "--event", "customer.updated", "--event", "customer.created"]
    made = create(installation, company.live, *more, "--description", "The shop", "--json").json()
    assert set(made) == FIELDS | {"secret"}
    assert made["secret"].startswith("whsec_")
    assert made["secretHint"] == made["secret"][-4:]
    assert (made["url"], made["events"]) == (URL, ["customer.created", "customer.updated"])
    assert (made["status"], made["failures"], made["description"]) == ("active", 0, "The shop")
    listed = webhook(installation, "list", "--company", str(company.live), "--json").json()
    assert listed == [{name: made[name] for name in made if name != "secret"}] == [show(installation, made["id"])]


@pytest.mark.long
def test_the_command_works_in_a_process_of_its_own(installation: Installation, company: Environments) -> None:
    arguments = ["webhook", "create", "--company", str(company.test), "--url", URL, "--all-events", "--json"]
    made = sapa_process(installation.data, *arguments).json()
    assert made["events"] == []
    assert made["companyId"] == company.test


async def test_secret_and_header_values_are_never_seen_again(
    installation: Installation, database: Database, company: Environments
) -> None:
    hidden = "Bearer swordfish-4711"
    made = create(installation, company.live, "--all-events", "--header", f"Authorization: {hidden}", "--json").json()
    new = webhook(installation, "rotate", made["id"], "--json").json()
    told = [
        webhook(installation, *command).out
        for command in (
            ["list", "--company", str(company.live), "--json"],
            ["list", "--company", str(company.live)],
            ["show", made["id"], "--json"],
            ["show", made["id"]],
            ["update", made["id"], "--description", "x", "--json"],
            ["pause", made["id"], "--json"],
            ["resume", made["id"], "--json"],
            ["deliveries", made["id"], "--json"],
        )
    ]
    async with database.connection() as db:
        rows = await db.fetch("SELECT * FROM webhook_endpoints WHERE company_id = $1", company.live)
    stored = b"".join(value if isinstance(value, bytes) else str(value).encode() for value in rows[0].values())
    for secret in (made["secret"], new["secret"], hidden, "swordfish"):
        assert secret.encode() not in stored
        assert secret not in "".join(told)
        assert secret not in installation.log.read_text()
    assert "Authorization" in told[2]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--url", "http://hooks.example.com"], "https"),
        (["--url", "https://127.0.0.1/hook"], "SAPA_WEBHOOK_ALLOW"),
        (["--url", "https://[::ffff:10.0.0.1]/hook"], "SAPA_WEBHOOK_ALLOW"),
        (["--url", "ftp://hooks.example.com"], "https"),
        (["--event", "customer.exploded"], "customer.created, customer.updated"),
        (["--header", "Host: x"], "Host"),
        (["--header", "Content-Length: 1"], "Content-Length"),
        (["--header", "X-Service-Webhook-Id: x"], "X-Service-Webhook-Id"),
        (["--header", "a b: x"], "'a b'"),
        (["--header", "X-A: é"], "X-A"),
        (["--header", "X-A: "], "X-A"),
        (["--header", f"X-A: {'x' * 1001}"], "1000"),
        (["--header", "X-A: 1", "--header", "x-a: 2"], "once"),
        ([item for n in range(21) for item in ("--header", f"X-{n}: 1")], "20"),
        (["--description", "x" * 501], "500"),
    ],
)
def test_an_invalid_endpoint_is_reported_in_one_sentence(
    installation: Installation, company: Environments, arguments: list[str], told: str
) -> None:
    given = {"--url": URL, "--event": "customer.created"}
    defaults = [item for name, value in given.items() if name not in arguments for item in (name, value)]
    outcome = webhook(installation, "create", "--company", str(company.live), *defaults, *arguments)
    assert told in outcome.sentence()
    assert webhook(installation, "list", "--company", str(company.live), "--json").json() == []


@pytest.mark.parametrize("arguments", [[], ["--all-events", "--event", "customer.created"], ["--header", "x"]])
def test_what_is_misspelt_is_refused_with_help(
    installation: Installation, company: Environments, arguments: list[str]
) -> None:
    outcome = create(installation, company.live, *arguments)
    assert outcome.code == 2
    assert "Traceback" not in outcome.err


def test_every_kind_can_be_asked_for_and_is_listed(installation: Installation, company: Environments) -> None:
    kinds = [row["event"] for row in webhook(installation, "events", "--json").json()]
    assert kinds == sorted(CATALOGUE)
    request = [item for kind in kinds for item in ("--event", kind)]
    assert create(installation, company.live, *request, "--json").json()["events"] == kinds


TOKEN = st.text("!#$%&'*+-.^_`|~09azAZ", min_size=1, max_size=100)
TAKEN = st.sampled_from(
    ["host", "user-agent", "content-type", "content-length", "connection", "te", "transfer-encoding", "webhook-id",
     "x-service-webhook-signature", "proxy-authorization", "keep-alive", "upgrade", "trailer", "expect"]
)  # fmt: skip


@given(name=TAKEN, upper=st.sets(st.integers(0, 30)))
def test_no_header_of_the_delivery_itself_can_be_replaced_whatever_its_case(name: str, upper: set[int]) -> None:
    spelt = "".join(char.upper() if place in upper else char for place, char in enumerate(name))
    with pytest.raises(Invalid):
        check_headers({spelt: "x"})


@given(name=TOKEN, value=st.text(max_size=8))
def test_a_header_is_accepted_only_if_it_can_be_sent_unchanged(name: str, value: str) -> None:
    sendable = value != "" and all(" " <= char <= "~" for char in value) and value == value.strip(" ")
    try:
        taken = check_headers({f"x-{name}"[:100]: value})
    except Invalid:
        assert not sendable
    else:
        assert sendable
        assert list(taken.values()) == [value]


@given(name=st.text(min_size=1, max_size=5))
def test_a_name_that_is_no_token_is_refused(name: str) -> None:
    is_token = all(char.isascii() and (char.isalnum() or char in "!#$%&'*+-.^_`|~") for char in name)
    try:
        check_headers({f"x{name}": "v"})
    except Invalid:
        assert not is_token
    else:
        assert is_token


async def test_a_company_gets_ten_endpoints_even_when_all_ask_at_once(
    installation: Installation, database: Database, vault: Vault, company: Environments
) -> None:
    settings = WebhookSettings(allow_insecure=False, allowed_networks=())

    async def attempt() -> str | None:
        try:
            async with database.transaction() as tx:
                return (await actions.create(tx, vault, settings, company.live, WebhookEndpointIn(url=URL))).endpoint.id
        except WebhookLimit:
            return None

    made = [id for id in await asyncio.gather(*(attempt() for _ in range(20))) if id]
    assert len(made) == 10
    assert (
        create(installation, company.live, "--all-events").sentence()
        == "A company can have at most 10 webhook endpoints. Delete one first."
    )
    assert create(installation, company.test, "--all-events").code == 0, "the other environment counts for itself"
    webhook(installation, "delete", made[0], "--json").json()
    assert create(installation, company.live, "--all-events").code == 0


def test_an_endpoint_of_no_company_is_reported_in_one_sentence(installation: Installation) -> None:
    assert "sapa company list" in create(installation, 2**40, "--all-events").sentence()


@pytest.mark.parametrize(
    ("command", "id"),
    [
        *((command, UNKNOWN) for command in ("update", "pause", "resume", "rotate", "test", "delete", "deliveries")),
        *(("show", id) for id in (UNKNOWN, "whe_", "'; SELECT 1 --", "evt_01jc9y3q5me8w92v7x4t6r0n1k")),
        ("replay", UNKNOWN),
    ],
)
def test_an_unknown_endpoint_is_reported_in_one_sentence(installation: Installation, command: str, id: str) -> None:
    more = ["--since", "2026-01-31T09:00:00Z"] if command == "replay" else []
    assert webhook(installation, command, id, *more).sentence() == (
        "No webhook endpoint has this id. List the endpoints to see their ids."
    )


async def test_another_company_s_endpoint_is_unknown_to_every_action(
    database: Database, vault: Vault, company: Environments
) -> None:
    """Also between the two environments of one company."""
    settings = WebhookSettings(allow_insecure=False, allowed_networks=())
    made = await make_endpoint(database, vault, company.live, URL)
    id, foreign = made.endpoint.id, company.test
    calls: list[Callable[[Tx], Awaitable[object]]] = [
        lambda tx: actions.get(tx, vault, foreign, id),
        lambda tx: actions.update(tx, vault, settings, foreign, id, WebhookEndpointPatch(description="theirs")),
        lambda tx: actions.pause(tx, vault, foreign, id),
        lambda tx: actions.resume(tx, vault, foreign, id, Missed.ALL),
        lambda tx: actions.rotate(tx, vault, foreign, id),
        lambda tx: actions.delete(tx, foreign, id),
        lambda tx: test_event.prepare_test_event(tx, vault, foreign, id, None),
        lambda tx: deliveries.replay(database, foreign, id, datetime(2026, 1, 1, tzinfo=UTC)),
    ]
    for call in calls:
        async with database.transaction() as tx:
            with pytest.raises(EndpointNotFound):
                await call(tx)
    async with database.connection() as db:
        assert await actions.get(db, vault, company.live, id) == made.endpoint
        assert await actions.list_endpoints(db, vault, foreign) == []


def test_an_update_changes_only_the_given_fields(installation: Installation, company: Environments) -> None:
    options = ["--event", "customer.created", "--header", "X-Shop: melati", "--description", "The shop", "--json"]
    made = create(installation, company.live, *options).json()
    expected = {name: made[name] for name in FIELDS}

    def change(*arguments: str, **fields: Any) -> None:
        changed = webhook(installation, "update", made["id"], *arguments, "--json").json()
        expected.update(fields, updatedAt=changed["updatedAt"])
        assert changed == expected == show(installation, made["id"])

    change()
    change("--no-auto-resume", autoResume=False)
    change("--auto-resume", autoResume=True)
    change("--url", "https://HOOKS.example.com/x?a=b", url="https://hooks.example.com/x?a=b")
    change("--event", "customer.deleted", events=["customer.deleted"])
    change("--all-events", events=[])
    change("--header", "X-A: 1", "--header", "X-B: 2", headers=["X-A", "X-B"])
    change("--no-headers", headers=[])
    change("--description", "Another", description="Another")
    change("--description", "", description=None)
    assert changed_at(expected) > made["updatedAt"]


@pytest.mark.parametrize(
    "url", ["https://thief.example.com/sapa", "https://hooks.example.com:8443/sapa", "http://hooks.example.com/sapa"]
)
def test_headers_are_asked_for_again_when_the_origin_changes(
    installation: Installation, company: Environments, url: str
) -> None:
    options = ["--all-events", "--header", "Authorization: Bearer swordfish", "--json"]
    made = create(installation, company.live, *options).json()

    def update(*arguments: str) -> Outcome:
        words = ["webhook", "update", made["id"], *arguments, "--json"]
        return sapa(installation.data, *words, SAPA_WEBHOOK_ALLOW_INSECURE="1")

    assert update("--url", url).sentence() == "headers: must be entered again, because the URL's origin changes"
    assert show(installation, made["id"])["url"] == URL
    assert update("--url", "https://HOOKS.example.com:443/other").json()["headers"] == ["Authorization"]
    moved = update("--url", url, "--header", "X-Token: another").json()
    assert (moved["url"], moved["headers"], moved["secretHint"]) == (url, ["X-Token"], made["secretHint"])
    back = update("--url", URL, "--no-headers").json()
    assert (back["url"], back["headers"]) == (URL, [])
    assert update("--url", url).json()["url"] == url, "without headers nothing has to be entered"


def test_a_contradiction_is_refused(installation: Installation, company: Environments) -> None:
    made = create(installation, company.live, "--all-events", "--header", "X-A: 1", "--json").json()
    for both in (["--all-events", "--event", "customer.created"], ["--no-headers", "--header", "X-B: 2"]):
        assert webhook(installation, "update", made["id"], *both).code == 2
    assert (show(installation, made["id"])["events"], show(installation, made["id"])["headers"]) == ([], ["X-A"])


def test_lists_of_no_company_are_reported_in_one_sentence(installation: Installation) -> None:
    for command in (["webhook", "list"], ["webhook", "notices"], ["token", "list"]):
        assert "sapa company list" in sapa(installation.data, *command, "--company", str(2**40)).sentence()


def changed_at(endpoint: dict[str, Any]) -> str:
    return str(endpoint["updatedAt"])


@pytest.mark.parametrize(
    "arguments", [["--url", "http://x.example.com"], ["--event", "x"], ["--header", "Host: x"], ["--description", "\n"]]
)
def test_a_change_that_is_refused_changes_nothing(
    installation: Installation, company: Environments, arguments: list[str]
) -> None:
    made = create(installation, company.live, "--all-events", "--json").json()
    assert webhook(installation, "update", made["id"], "--description", "new", *arguments).code == 1
    assert show(installation, made["id"])["description"] is None


async def test_while_it_is_paused_what_waits_is_held_and_nothing_new_is_queued(
    installation: Installation, api: httpx.AsyncClient, database: Database, vault: Vault, company: Environments
) -> None:
    made = await make_endpoint(database, vault, company.live, "https://no.such.host.invalid/hook")
    await make_customer(api)
    assert webhook(installation, "pause", made.endpoint.id, "--json").json()["status"] == "paused"
    again = webhook(installation, "pause", made.endpoint.id, "--json").json()
    assert again["status"] == "paused"
    await make_customer(api)
    assert await queued(database, company.live) == 1
    (held,) = webhook(installation, "deliveries", made.endpoint.id, "--json").json()
    assert (held["status"], held["event"]) == ("held", "customer.created")
    async with database.connection() as db:
        row = await db.fetchrow(
            "SELECT missed_since, updated_at FROM webhook_endpoints WHERE company_id = $1", company.live
        )
    assert row is not None
    assert row["missed_since"] <= row["updated_at"] == again["updatedAt"], "pausing it again changed nothing"


async def test_resuming_chooses_how_to_catch_up_and_resets_the_failures(
    installation: Installation, database: Database, vault: Vault, company: Environments
) -> None:
    id = (await make_endpoint(database, vault, company.live)).endpoint.id
    assert webhook(installation, "resume", id).sentence() == "The webhook endpoint is already active."
    for missed in ("all", "latest", "skip"):
        async with database.connection() as db:
            await db.execute("UPDATE webhook_lanes SET failures = 10 WHERE company_id = $1", company.live)
            await db.execute(
                """
                UPDATE webhook_endpoints SET status = 'suspended', reason = 'it failed', missed_since = now()
                 WHERE company_id = $1""",
                company.live,
            )
        suspended = show(installation, id)
        assert (suspended["status"], suspended["reason"], suspended["failures"]) == ("suspended", "it failed", 10)
        resumed = webhook(installation, "resume", id, "--missed", missed, "--json").json()
        assert (resumed["status"], resumed["reason"], resumed["failures"]) == ("active", None, 0)
        assert resumed["catchingUp"] == missed
    assert webhook(installation, "resume", id, "--missed", "some").code == 2


async def test_pausing_before_it_caught_up_loses_nothing_of_what_it_missed(
    installation: Installation, database: Database, vault: Vault, company: Environments
) -> None:
    id = (await make_endpoint(database, vault, company.live)).endpoint.id
    long_ago = "SELECT missed_since, catch_up, resumed_at FROM webhook_endpoints WHERE company_id = $1"
    async with database.transaction() as tx:
        await tx.execute(
            """
            UPDATE webhook_endpoints SET catch_up = 'all', missed_since = '2026-01-01', resumed_at = now()
             WHERE company_id = $1""",
            company.live,
        )
        await actions.pause(tx, vault, company.live, id)
        row = await tx.fetchrow(long_ago, company.live)
    assert tuple(row or ()) == ("2026-01-01T00:00:00.000Z", None, None)


async def test_deleting_takes_what_waits_along(
    installation: Installation, api: httpx.AsyncClient, database: Database, vault: Vault, company: Environments
) -> None:
    doomed, kept = [await make_endpoint(database, vault, company.live) for _ in range(2)]
    for endpoint in (doomed, kept):
        webhook(installation, "pause", endpoint.endpoint.id)
        async with database.connection() as db:
            await db.execute(
                """
                INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
                VALUES ($1, $2, $3, now(), 'evt_x', now())""",
                company.live, f"whd_{endpoint.endpoint.id}", endpoint.endpoint.id,
            )  # fmt: skip
    gone = webhook(installation, "delete", doomed.endpoint.id, "--json").json()
    assert gone == {"id": doomed.endpoint.id, "deleted": True}
    assert await queued(database, company.live) == 1
    left = webhook(installation, "list", "--company", str(company.live), "--json").json()
    assert [endpoint["id"] for endpoint in left] == [kept.endpoint.id]


async def test_notices_are_listed_newest_first(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with database.connection() as db:
        for number in range(2):
            await db.execute(
                "INSERT INTO notices (company_id, id, kind, resource_id, message) VALUES ($1, $2, $3, $4, $5)",
                company.live, f"ntc_{number}", "webhook.suspended", UNKNOWN, f"sentence {number}",
            )  # fmt: skip
    notices = webhook(installation, "notices", "--company", str(company.live), "--json").json()
    assert [notice["message"] for notice in notices] == ["sentence 1", "sentence 0"]
    assert "sentence 1" in webhook(installation, "notices", "--company", str(company.live)).out


def test_people_see_tables_and_the_secret_once(installation: Installation, company: Environments) -> None:
    made = create(installation, company.live, "--all-events", "--description", "[red]The shop[/]")
    assert made.code == 0
    assert made.out.count("whsec_") == 1
    assert "shown only once" in made.out
    listed = webhook(installation, "list", "--company", str(company.live)).out
    assert "[red]The shop[/]" in listed
    assert URL in listed
    assert "whsec_" not in listed
