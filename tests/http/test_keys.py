"""Who may call at all: the form of keys, and keys that are unknown, revoked, expired or rotated."""

import asyncio
import os
import signal
from datetime import timedelta
from email.utils import parsedate_to_datetime
from zlib import crc32

import pytest

from sapa.access import actions
from sapa.access.queries import get_key
from sapa.access.types import ApiKey, NewKey
from sapa.db.pool import Database, open_database
from sapa.http.errors import InvalidApiKey
from sapa.http.keys import KeyRing, hash_key, is_well_formed, new_key
from tests.conftest import Installation, connect
from tests.factories import Environments, MadeKey, end_key, make_company, make_key
from tests.http.wire import Reply, eventually, send, send_many

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
DAY = timedelta(hours=24)


def checksum(body: str) -> str:
    """CRC32 in base 62, six digits: written again here, so that a change of the form is noticed."""
    number, digits = crc32(body.encode()), ""
    while len(digits) < 6:
        digits = BASE62[number % 62] + digits
        number //= 62
    return digits


def call(installation: Installation, *keys: str) -> Reply:
    return send(installation, "GET", "/customers", [("x-api-key", key) for key in keys])


async def rotate(database: Database, id: str) -> NewKey:
    async with database.transaction() as tx:
        return await actions.rotate_key(tx, id)


async def revoke(database: Database, id: str) -> None:
    async with database.transaction() as tx:
        await actions.revoke_key(tx, id)


async def move_clock(database: Database, company_id: int, by: timedelta | None) -> None:
    async with database.transaction() as tx:
        await actions.move_clock(tx, company_id, by)


async def wait_for_answer(installation: Installation, key: str, status: int) -> Reply:
    """Repeats a call until the change has reached the process that answers."""

    async def look() -> Reply | None:
        reply = call(installation, key)
        return reply if reply.status == status else None

    return await eventually(look)


def test_a_call_without_a_key_is_refused(installation: Installation) -> None:
    reply = call(installation)
    assert reply.status == 401
    assert reply.json() == {
        "error": {"code": "MISSING_API_KEY", "message": "Send your API key in the header x-api-key."}
    }


def test_an_empty_key_is_a_missing_one(installation: Installation) -> None:
    assert (call(installation, "").status, call(installation, "").code) == (401, "MISSING_API_KEY")


def test_a_key_in_the_query_string_or_as_a_bearer_token_does_not_count(installation: Installation) -> None:
    raw = new_key("live")
    assert send(installation, "GET", f"/customers?x-api-key={raw}").code == "MISSING_API_KEY"
    assert send(installation, "GET", "/customers", [("authorization", f"Bearer {raw}")]).code == "MISSING_API_KEY"


VALID_FORM = "svc_live_" + "a" * 32
MALFORMED = {
    "wrong checksum": VALID_FORM + "000000",
    "no checksum": VALID_FORM,
    "too short": VALID_FORM[:-1] + checksum(VALID_FORM[:-1]),
    "too long": VALID_FORM + "a" + checksum(VALID_FORM + "a"),
    "unknown environment": "svc_prod_" + "a" * 32 + checksum("svc_prod_" + "a" * 32),
    "other prefix": "sk_live_" + "a" * 33 + checksum("sk_live_" + "a" * 33),
    "upper-case prefix": VALID_FORM.upper() + checksum(VALID_FORM.upper()),
    "underscore inside": "svc_live_" + "a" * 31 + "_" + checksum("svc_live_" + "a" * 31 + "_"),
    "not ASCII": "svc_live_" + "é" * 32 + "000000",
    "digits of another script": "svc_live_" + "²" * 32 + "000000",
    "one blank more": VALID_FORM + checksum(VALID_FORM) + " x",
    "quoted": f'"{VALID_FORM}{checksum(VALID_FORM)}"',
    "very long": "svc_live_" + "a" * 5000,
    "one character": "x",
}


@pytest.mark.parametrize("key", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_key_is_refused(installation: Installation, key: str) -> None:
    reply = call(installation, key)
    assert (reply.status, reply.code) == (401, "INVALID_API_KEY")
    assert not is_well_formed(key)


def test_a_well_formed_key_that_nobody_made_is_refused(installation: Installation) -> None:
    unknown = VALID_FORM + checksum(VALID_FORM)
    assert is_well_formed(unknown)
    reply = call(installation, unknown)
    assert reply.status == 401
    assert reply.json() == {
        "error": {"code": "INVALID_API_KEY", "message": "The API key is invalid, revoked or expired."}
    }


async def test_two_key_headers_are_refused_even_when_each_would_do(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live)
    assert call(installation, key.raw).status == 200
    for pair in [(key.raw, key.raw), ("", key.raw), (key.raw, "")]:
        reply = call(installation, *pair)
        assert (reply.status, reply.code) == (401, "INVALID_API_KEY")


def test_new_keys_have_the_documented_form() -> None:
    for environment in ("live", "test"):
        key = new_key(environment)
        assert key.startswith(f"svc_{environment}_")
        assert len(key) == len("svc_live_") + 32 + 6
        assert key[-6:] == checksum(key[:-6])
        assert set(key[9:]) <= set(BASE62)
        assert is_well_formed(key)


def test_every_single_typo_in_a_key_is_noticed_without_a_look_up() -> None:
    key = new_key("test")
    for place in range(len(key)):
        other = "b" if key[place] != "b" else "c"
        assert not is_well_formed(key[:place] + other + key[place + 1 :])


def test_no_two_new_keys_are_alike() -> None:
    assert len({new_key("live") for _ in range(1000)}) == 1000


async def test_a_live_key_sees_live_data_and_a_test_key_test_data(
    installation: Installation, database: Database, company: Environments
) -> None:
    live, test = await make_key(database, company.live), await make_key(database, company.test)
    assert live.raw.startswith("svc_live_")
    assert test.raw.startswith("svc_test_")
    async with connect(installation, live.raw) as api, connect(installation, test.raw) as sandbox:
        assert (await sandbox.post("/customers", json={"email": "a@example.com"})).status_code == 201
        assert (await api.get("/customers")).json()["meta"]["total"] == 0
        assert (await sandbox.get("/customers")).json()["meta"]["total"] == 1


async def test_only_a_hash_of_a_key_is_stored(database: Database, company: Environments) -> None:
    key = await make_key(database, company.live)
    async with database.connection() as db:
        row = await db.fetchrow("SELECT k::text, hash FROM api_keys k WHERE id = $1", key.id)
    assert row is not None
    assert row[1] == hash_key(key.raw)
    assert key.raw[9:-4] not in row[0]
    assert "svc_live_" in row[0]
    assert key.raw[-4:] in row[0]


async def test_a_revoked_key_stops_working_on_all_processes_within_a_second(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live)
    assert {reply.status for reply in send_many(installation, key.raw, 40)} == {200}
    await revoke(database, key.id)
    await asyncio.sleep(1)
    after = send_many(installation, key.raw, 200)
    assert {(reply.status, reply.code) for reply in after} == {(401, "INVALID_API_KEY")}


async def test_a_process_whose_listener_hangs_reads_a_key_again_after_a_second(
    database: Database, company: Environments
) -> None:
    """The connection is open, but nothing arrives: it takes a while until that is an error."""
    key = await make_key(database, company.live)
    async with open_database(database.url, application="hanging") as own:
        ring = KeyRing(own, actions.load_key)
        ring.start()
        await eventually(lambda: is_listening(own))
        await ring.identify(key.raw, "network")
        async with database.connection() as db:
            statement = "SELECT pid FROM pg_stat_activity WHERE application_name = $1"
            listener: int = await db.fetchval(statement, own.hub.application)
        os.kill(listener, signal.SIGSTOP)
        try:
            await revoke(database, key.id)
            await asyncio.sleep(1)
            with pytest.raises(InvalidApiKey):
                await ring.identify(key.raw, "network")
        finally:
            os.kill(listener, signal.SIGCONT)


async def is_listening(database: Database) -> bool | None:
    return database.hub.alive_at > 0 or None


async def test_revoking_a_key_leaves_its_company_s_others_alone(
    installation: Installation, database: Database, company: Environments
) -> None:
    lost, stored = await make_key(database, company.live), await make_key(database, company.live)
    await revoke(database, lost.id)
    await wait_for_answer(installation, lost.raw, 401)
    assert {reply.status for reply in send_many(installation, stored.raw, 20)} == {200}


async def test_a_key_stops_when_its_time_is_over(
    installation: Installation, database: Database, company: Environments
) -> None:
    past = await make_key(database, company.live)
    await end_key(database, past.id)
    future = await make_key(database, company.live, expires_at="2999-01-01T00:00:00Z")
    assert (call(installation, past.raw).status, call(installation, past.raw).code) == (401, "INVALID_API_KEY")
    assert call(installation, future.raw).status == 200


async def test_a_key_that_every_process_has_cached_stops_when_it_expires(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with database.connection() as db:
        soon = await db.fetchval("SELECT to_char(now() + '3 s', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')")
    key = await make_key(database, company.live, expires_at=soon)
    assert 200 in {reply.status for reply in send_many(installation, key.raw, 20)}
    await asyncio.sleep(3)
    assert {reply.code for reply in send_many(installation, key.raw, 20)} == {"INVALID_API_KEY"}


@pytest.fixture
async def rotated(database: Database, company: Environments) -> tuple[MadeKey, NewKey]:
    """A key of the test environment, whose clock can be moved, and its successor."""
    old = await make_key(
        database, company.test, scopes=["customers:READ"], allow_list=["127.0.0.1", "::1"], rate_limit=5000
    )
    return old, await rotate(database, old.id)


async def test_a_rotated_key_works_for_24_hours_and_not_longer(
    installation: Installation, database: Database, company: Environments, rotated: tuple[MadeKey, NewKey]
) -> None:
    old, new = rotated
    assert call(installation, old.raw).status == call(installation, new.key).status == 200
    await move_clock(database, company.test, DAY - timedelta(minutes=1))
    await asyncio.sleep(1)
    assert {reply.status for reply in send_many(installation, old.raw, 40)} == {200}
    await move_clock(database, company.test, timedelta(minutes=1))
    await asyncio.sleep(1)
    assert {reply.code for reply in send_many(installation, old.raw, 40)} == {"INVALID_API_KEY"}
    assert {reply.status for reply in send_many(installation, new.key, 40)} == {200}


async def test_responses_to_a_rotated_key_have_deprecation_and_sunset(
    installation: Installation, database: Database, rotated: tuple[MadeKey, NewKey]
) -> None:
    old, new = rotated
    async with database.connection() as db:
        stops = await db.fetchval("SELECT extract(epoch FROM expires_at)::float8 FROM api_keys WHERE id = $1", old.id)
    for path in ("/customers", "/customers/unknown", "/nowhere"):
        headers = send(installation, "GET", path, [("x-api-key", old.raw)]).headers
        assert abs(parsedate_to_datetime(headers["sunset"]).timestamp() - stops) <= 1
        assert abs(int(headers["deprecation"].removeprefix("@")) - (stops - 24 * 3600)) <= 1
    fresh = call(installation, new.key).headers
    assert "sunset" not in fresh
    assert "deprecation" not in fresh


async def test_the_successor_of_a_key_may_do_exactly_what_the_key_might(
    database: Database, rotated: tuple[MadeKey, NewKey]
) -> None:
    old, new = rotated
    async with database.connection() as db:
        before, after = await get_key(db, old.id), await get_key(db, new.info.id)
    assert before.replaced_by == after.id
    for right in ("company_id", "environment", "name", "scopes", "products", "allow_list", "rate_limit"):
        assert getattr(after, right) == getattr(before, right)


async def test_rotation_does_not_lengthen_the_life_of_a_key(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with database.connection() as db:
        soon = await db.fetchval("SELECT to_char(now() + '1 h', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')")
    key = await make_key(database, company.test, expires_at=soon)
    await rotate(database, key.id)
    assert call(installation, key.raw).status == 200
    await move_clock(database, company.test, timedelta(hours=1))
    await wait_for_answer(installation, key.raw, 401)


async def test_a_rotated_key_can_be_revoked_before_its_grace_is_over(
    installation: Installation, database: Database, rotated: tuple[MadeKey, NewKey]
) -> None:
    old, new = rotated
    await revoke(database, old.id)
    await wait_for_answer(installation, old.raw, 401)
    assert call(installation, new.key).status == 200


async def test_moving_one_company_s_clock_leaves_other_companies_keys_alone(
    installation: Installation, database: Database, rotated: tuple[MadeKey, NewKey]
) -> None:
    old, _ = rotated
    other = await make_company(database)
    await move_clock(database, other.test, timedelta(days=30))
    await asyncio.sleep(1)
    assert {reply.status for reply in send_many(installation, old.raw, 20)} == {200}


async def test_when_and_from_where_a_key_was_last_used_is_recorded(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live)
    async with database.connection() as db:
        assert (await get_key(db, key.id)).last_used_at is None
        assert call(installation, key.raw).status == 200

        async def look() -> ApiKey | None:
            info = await get_key(db, key.id)
            return info if info.last_used_at else None

        info = await eventually(look)
    assert info.last_used_ip == "127.0.0.1"
    assert info.last_used_at is not None
    assert info.last_used_at >= info.created_at
