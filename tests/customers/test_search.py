from typing import Any

import httpx
import pytest

from sapa.customers.profile import Profile, build_profile
from sapa.customers.types import CustomerIn
from sapa.db.migrations.files import list_migrations
from sapa.values.company import Company
from tests.conftest import Installation
from tests.customers.test_listing import ask
from tests.db.scratch import connect, migrated_database
from tests.factories import make_customer

COMPANY = Company(1, "live", "ID", "IDR")
AYU = {"firstName": "Ayu", "lastName": "Lestari", "email": "ayu.l@example.com", "phoneNumber": "+628123456789"}


async def finds(api: httpx.AsyncClient, term: str, fields: dict[str, Any]) -> bool:
    """Whether a search among two customers finds the one with these fields, and not the other."""
    made = await make_customer(api, **{"email": "x@y.example", **fields})
    await make_customer(api, email="zz@zz.example", firstName="Zz", lastName="Zz")
    page = await ask(api, {"search": term})
    assert page["meta"]["total"] == len(page["data"])
    assert all(found == made for found in page["data"])
    return bool(page["data"])


@pytest.mark.parametrize(
    "term",
    [
        "Ayu", "ayu", "AYU", "aYu", "yu", "Lestari", "ESTAR", "Ayu Lestari", "yu les", "ayu  lestari", " ayu ",
        "ayu.l@example.com", "AYU.L@", "l@exa", "@example", "u", ".l",
    ],
)  # fmt: skip
async def test_a_part_of_the_name_or_email_is_found_in_any_case(api: httpx.AsyncClient, term: str) -> None:
    assert await finds(api, term, AYU)


@pytest.mark.parametrize(
    "term", ["ayo", "Lestari Ayu", "ayulestari", "lestari ayu.l", "Ayu Lestari x", "example.org", "ayu\nlestari x"]
)
async def test_text_outside_name_and_email_is_not_found(api: httpx.AsyncClient, term: str) -> None:
    assert not await finds(api, term, AYU)


@pytest.mark.parametrize(
    "term",
    [
        "08123456789", "0812", "0812-3456", "(0812) 3456 789", "+62 812-3456-789", "+628123456789", "62812", "812.3456",
        "3456", "6789", "+62", "9",
    ],
)  # fmt: skip
async def test_digits_of_the_phone_are_found_however_written(api: httpx.AsyncClient, term: str) -> None:
    assert await finds(api, term, {"phoneNumber": "0812 3456 789"})


@pytest.mark.parametrize("term", ["0813", "+62 812 9999", "08123456780", "+63", "00999", "0812 3456 789 ext"])
async def test_other_digits_are_not_found(api: httpx.AsyncClient, term: str) -> None:
    assert not await finds(api, term, {"phoneNumber": "0812 3456 789"})


@pytest.mark.parametrize("term", ["0812", "8-1-2", "(812)"])
async def test_a_phone_number_search_matches_phone_numbers_only(api: httpx.AsyncClient, term: str) -> None:
    assert not await finds(api, term, {"email": "room812@example.com", "firstName": "812"})


@pytest.mark.parametrize(
    ("name", "term"),
    [
        ("Straße", "STRASSE"), ("STRASSE", "straße"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("σίσυφος", "ΣΊΣΥΦΟΣ"), ("ÉLAN", "élan"),
        ("Ångström", "ÅNGSTRÖM"), ("ДМИТРИЙ", "дмитрий"), ("日本太郎", "本太"), ("ﬁnn", "FINN"),
        ("Ayu 🌸", "🌸"), ("O'Neil", "o'n"),
    ],
)  # fmt: skip
async def test_case_is_folded_in_every_script(api: httpx.AsyncClient, name: str, term: str) -> None:
    assert await finds(api, term, {"firstName": name})


@pytest.mark.parametrize(
    ("name", "term"),
    [
        ("José", "jose"), ("jose", "JOSÉ"), ("Jose\u0301", "josé"), ("Nguyễn", "nguyen"), ("Łukasz Żak", "zak"),
        ("ÅNGSTRÖM", "angstrom"), ("ﬁnn", "finn"), ("Ｊｏｓé", "jose"),
    ],
)  # fmt: skip
async def test_accents_make_no_difference(api: httpx.AsyncClient, name: str, term: str) -> None:
    assert await finds(api, term, {"firstName": name})


async def test_accents_of_an_email_make_no_difference(api: httpx.AsyncClient) -> None:
    assert await finds(api, "jose@", {"email": "josé@example.com"})
    assert (await ask(api, {"search": "JOSÉ@"}))["meta"]["total"] == 1


async def test_customers_stored_before_accents_were_folded_are_found(installation: Installation) -> None:
    """The migration stores the same text as a write today."""
    names = [
        "José  LESTARI", "Nguyễn Văn Ánh", "Straße", "ayu", "ﬁnn", "Ｊｏｓé", "a\u00a8b", "ДМИТРИЙ", "한글", "İstanbul",
    ]  # fmt: skip
    emails = [f"jos\u00e9.{number}@example.com" for number in range(len(names))]
    bodies = [CustomerIn(first_name=name, email=email) for name, email in zip(names, emails, strict=True)]
    profiles = [build_profile(COMPANY, customer) for customer in bodies]
    (migration,) = [one for one in list_migrations() if one.name.endswith("_customer_search")]
    async with migrated_database(installation.server) as scratch, connect(scratch.owner_url) as owner:
        for profile in profiles:
            await owner.execute(
                """INSERT INTO customers (company_id, id, email, tags, addresses, additional_data, subscription_status,
                                          search_text)
                   VALUES (1, $1, $1, '{}', '[]', '{}', '[]', $2)""",
                profile.email,
                text_before(profile),
            )
        async with owner.transaction():
            await owner.execute(migration.text)
        rows = await owner.fetch("SELECT id, search_text FROM customers")
    assert {row[0]: row[1] for row in rows} == {profile.email: profile.search_text for profile in profiles}


def text_before(profile: Profile) -> str:
    """The search text as it was stored before accents were folded."""
    name = " ".join(f"{profile.first_name} {profile.last_name or ''}".casefold().split())
    return "\n".join([name, profile.email_key or "", (profile.phone_number or "").lstrip("+")])


@pytest.mark.parametrize(
    ("name", "term", "found"),
    [
        ("100%", "%", True), ("100%", "0%", True), ("Ayu", "%", False), ("Ayu", "A%u", False), ("a_b", "_", True),
        ("a_b", "a_b", True), ("aXb", "a_b", False), ("Ayu", "_", False), ("Ayu", "A_u", False), ("a\\b", "\\", True),
        ("a\\b", "a\\b", True), ("Ayu", "\\", False), ("a\\%b", "\\%", True), ("a%b", "\\%", False),
        ("a\\b", "b\\", False),
        ("a'b", "'", True), ('a"b', '"', True), ("a{b}", "{b}", True), ("$1", "$1", True), ("a,b", ",", True),
    ],
)  # fmt: skip
async def test_wildcard_characters_are_searched_literally(
    api: httpx.AsyncClient, name: str, term: str, found: bool
) -> None:
    assert await finds(api, term, {"firstName": name}) is found


async def test_blanks_in_a_name_do_not_hide_it(api: httpx.AsyncClient) -> None:
    assert await finds(api, "siti nur haliza", {"firstName": " Siti  Nur ", "lastName": "\tHaliza"})


async def test_a_search_follows_changes(api: httpx.AsyncClient) -> None:
    made = await make_customer(api, **AYU)
    await api.put(f"/customers/{made['id']}", json={"firstName": "Budi", "email": "b@example.org", "phoneNumber": None})
    for term in ("ayu", "ayu.l", "0812"):
        assert (await ask(api, {"search": term}))["data"] == []
    for term in ("budi lestari", "b@example.org"):
        assert len((await ask(api, {"search": term}))["data"]) == 1


async def test_a_long_term_is_found_and_a_longer_one_refused(api: httpx.AsyncClient) -> None:
    assert await finds(api, "x" * 200, {"firstName": "x" * 255})
    assert (await api.get("/customers", params={"search": "x" * 201})).status_code == 400
