from pathlib import Path

import httpx
import pytest

from tests.cli.command import sapa
from tests.conftest import Installation
from tests.factories import Environments
from tests.imports.files import list_all, run_import, write

HEADER = "externalId,email,firstName,tags,additionalData.visits\n"
GOOD = "shop-{n},ayu{n}@example.com,Ayu {n},vip,{n}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "customers.csv"


@pytest.mark.parametrize(
    ("start", "line_break", "separator", "end"),
    [
        ("", "\n", ",", "\n"),
        ("\ufeff", "\n", ";", ""),
        ("", "\r\n", "\t", "\n\n  \n"),
        ("\ufeff", "\r\n", ",", ""),
        ("\ufeff", "\r\n", ";", "\n,,,\n".replace(",", ";")),
    ],
)
async def test_the_usual_forms_of_csv(
    installation: Installation,
    company: Environments,
    api: httpx.AsyncClient,
    file: Path,
    start: str,
    line_break: str,
    separator: str,
    end: str,
) -> None:
    lines = [["externalId", "email", "lastName", "tags"], ["a", "a@example.com", '"Putri, ""Ayu"""', '"vip, new"']]
    text = start + "\n".join(separator.join(line) for line in lines) + end
    write(file, text.replace("\n", line_break).encode())
    assert run_import(installation, company.live, file, "customers").counts == (1, 0, 0, 0)
    [customer] = await list_all(api, "customers")
    assert (customer["lastName"], customer["tags"]) == ('Putri, "Ayu"', ["vip", "new"])


async def test_nested_values_as_columns_and_as_json(
    installation: Installation, company: Environments, api: httpx.AsyncClient, file: Path
) -> None:
    write(
        file,
        "email,addresses.1.address1,addresses.2.address1,addresses.2.mainAddress,addresses.2.city,additionalData.visits,"
        "additionalData.card,additionalData.a,additionalData.a.b,subscriptionStatus\n"
        'a@example.com,Jl. Satu 1,Jl. Dua 2,true,Bandung,12,007,y,x,"[{""app"":""CRM"",""status"":""subscribe""}]"\n'
        "b@example.com,,Jl. Tiga 3,,,1.5,,,,\n",
    )
    assert run_import(installation, company.live, file, "customers").counts == (2, 0, 0, 0)
    first, second = sorted(await list_all(api, "customers"), key=lambda one: one["email"])
    assert [(a["address1"], a["city"], a["mainAddress"]) for a in first["addresses"]] == [
        ("Jl. Satu 1", None, False),
        ("Jl. Dua 2", "Bandung", True),
    ]
    assert first["additionalData"] == {"visits": 12, "card": "007", "a": "y", "a.b": "x"}
    assert first["subscriptionStatus"] == [{"app": "CRM", "status": "subscribe"}]
    assert [address["address1"] for address in second["addresses"]] == ["Jl. Tiga 3"]
    assert second["additionalData"] == {"visits": 1.5}


async def test_the_proof_of_a_subscription_is_recorded_with_it(
    installation: Installation, company: Environments, api: httpx.AsyncClient, file: Path
) -> None:
    header = "externalId,email,subscriptionStatus.1.app,subscriptionStatus.1.status,consentProof.text,"
    write(
        file,
        header + "consentProof.place,consentProof.reference,consentProof.obtainedAt\n"
        "a,a@example.com,CRM,subscribe,Ya mau,https://shop.example/daftar,form-7,2026-01-31T16:30:00+07:00\n"
        "b,b@example.com,CRM,subscribe,,,,\n",
    )
    assert run_import(installation, company.live, file, "customers").counts == (2, 0, 0, 0)
    first, second = sorted(await list_all(api, "customers"), key=lambda one: one["email"])
    (consent,) = (await api.get(f"/customers/{first['id']}/consents")).json()["data"]
    assert (consent["app"], consent["status"], consent["source"]) == ("CRM", "subscribe", "import")
    assert consent["actor"]["type"] == "import"
    assert consent["proof"] == {
        "text": "Ya mau",
        "place": "https://shop.example/daftar",
        "reference": "form-7",
        "obtainedAt": "2026-01-31T09:30:00.000Z",
    }
    (consent,) = (await api.get(f"/customers/{second['id']}/consents")).json()["data"]
    assert set(consent["proof"].values()) == {None}
    write(file, header + "consentProof.place\nb,b@example.com,CRM,subscribe,Saya mau,toko\n")
    assert run_import(installation, company.live, file, "customers").counts == (0, 0, 1, 0)
    newest, _ = (await api.get(f"/customers/{second['id']}/consents")).json()["data"]
    assert newest["proof"]["text"] == "Saya mau"


async def test_an_empty_cell_keeps_the_stored_value(
    installation: Installation, company: Environments, api: httpx.AsyncClient, file: Path
) -> None:
    write(file, "externalId,email,firstName,tags\na,a@example.com,Ayu,vip\n")
    run_import(installation, company.live, file, "customers")
    write(file, "externalId,email,firstName,tags\na,,Budi,\n")
    assert run_import(installation, company.live, file, "customers").counts == (0, 1, 0, 0)
    [customer] = await list_all(api, "customers")
    assert (customer["firstName"], customer["email"], customer["tags"]) == ("Budi", "a@example.com", ["vip"])


async def test_a_quoted_line_break_belongs_to_its_record(
    installation: Installation, company: Environments, api: httpx.AsyncClient, file: Path
) -> None:
    write(file, 'email,lastName\na@example.com,"one\ntwo, ""three""\n"\nbad,x\n"b@example.com","four"\n')
    done = run_import(installation, company.live, file, "customers")
    assert [error[:2] for error in done.errors] == [(5, "email")]
    names = {customer["lastName"] for customer in await list_all(api, "customers")}
    assert names == {'one\ntwo, "three"\n', "four"}


BAD_LINES: dict[str, tuple[bytes, str, str]] = {
    "bad UTF-8": (b"x,\xff@example.com,A,,\n", "", "is not valid UTF-8"),
    "NUL": (b"x,x@example.com,A\0,,\n", "", "NUL"),
    "overlong": (b"x,x@example.com," + b"A" * 1_100_000 + b",,\n", "", "is longer than"),
    "too few cells": (b"x,x@exam\n", "", "has 2 cells, but the header has 5"),
    "too many cells": (b"x,x@example.com,A,,,,\n", "", "has 7 cells, but the header has 5"),
    "unclosed quote": (b'x,x@example.com,"A,,\n', "", "CSV"),
    "text after a quote": (b'x,x@example.com,"A"B,,\n', "", "CSV"),
    "carriage return": (b"x,x@example.com,A\rB,,\n", "", "CSV"),
    "no e-mail address": (b"x,nobody,A,,\n", "email", "must be an e-mail address"),
    "unreachable": (b"x,,A,,\n", "", "needs an email or a phoneNumber"),
    "too long": (b"x,x@example.com," + b"A" * 256 + b",,\n", "firstName", "at most 255 characters"),
    "taken e-mail": (b"x,ayu1@example.com,A,,\n", "email", "belongs to an existing customer"),
    "space at the end": (b"x ,x@example.com,A,,\n", "externalId", "whitespace"),
}


async def test_bad_lines_are_reported_and_the_others_are_imported(
    installation: Installation, company: Environments, api: httpx.AsyncClient, file: Path
) -> None:
    lines = [HEADER.encode(), GOOD.format(n=1).encode()]
    for n, (line, _, _) in enumerate(BAD_LINES.values(), start=2):
        lines += [line, GOOD.format(n=n).encode()]
    write(file, b"".join(lines))
    done = run_import(installation, company.live, file, "customers")
    assert done.counts == (len(BAD_LINES) + 1, 0, 0, len(BAD_LINES))
    expected = [(line, field) for line, (_, field, _) in enumerate_places()]
    assert [(line, field) for line, field, _ in done.errors] == expected
    for (_, _, reason), (kind, (_, _, words)) in zip(done.errors, BAD_LINES.items(), strict=True):
        assert words in reason, kind
    assert len(await list_all(api, "customers")) == len(BAD_LINES) + 1


def enumerate_places() -> list[tuple[int, tuple[bytes, str, str]]]:
    """Each bad line with its number in the file: header, good, bad, good, bad …"""
    return [(3 + 2 * index, line) for index, line in enumerate(BAD_LINES.values())]


@pytest.mark.parametrize("kind", ["too few cells", "unclosed quote", "overlong", "bad UTF-8"])
async def test_a_broken_last_line_is_reported(
    installation: Installation, company: Environments, file: Path, kind: str
) -> None:
    line, _, reason = BAD_LINES[kind]
    write(file, HEADER.encode() + GOOD.format(n=1).encode() + line.removesuffix(b"\n"))
    done = run_import(installation, company.live, file, "customers")
    assert done.counts == (1, 0, 0, 1)
    assert done.errors[0][0] == 3
    assert reason in done.errors[0][2]


async def test_a_cell_with_broken_json_names_its_column(
    installation: Installation, company: Environments, file: Path
) -> None:
    write(file, 'email,addresses\na@example.com,"[{"\nb@example.com,"[{""street"":1}]"\nc@example.com,[]\n')
    done = run_import(installation, company.live, file, "customers")
    assert done.counts == (1, 0, 0, 2)
    assert [(line, field) for line, field, _ in done.errors] == [(2, "addresses"), (3, "addresses[0].street")]


@pytest.mark.parametrize(
    ("header", "named"),
    [
        ("email,fristName,city", "fristName, city"),
        ("email,addresses.0.city", "addresses.0.city"),
        ("email,addresses.1.street", "addresses.1.street"),
        ("email,additionalData.", "additionalData."),
        ("email,", "a column without a name"),
        ("email,email", "more than once: email"),
        ("email,addresses,addresses.1.city", "more than once: addresses.1.city"),
        ('email,"x', "header"),
        ("", "empty"),
        ("\nemail", "first line is empty"),
        ("email,addresses.1.city,addresses", "more than once: addresses.1.city"),
        ("email,addresses.01.city,addresses.1.city", "more than once: addresses.1.city"),
        ("id,email,id", "more than once: id"),
        (f"email,addresses.{'9' * 5_000}.city", "unknown columns: addresses.999"),
        ("email," + ",".join(f"additionalData.f{n}" for n in range(1_000)), "1,001 columns; at most 1,000 are allowed"),
        (",".join(f"f{n}" for n in range(1_000)), "f19 and 980 more"),
        ("email,firstName\ra@example.com,Ayu\rb@example.com,Budi", "CR only"),
        ("email,firstName\r" + "a@example.com,Ayu\r" * 80_000, "CR only"),
    ],
)
async def test_an_unusable_header_is_refused_before_anything_is_imported(
    installation: Installation, company: Environments, api: httpx.AsyncClient, file: Path, header: str, named: str
) -> None:
    write(file, header + ("\na@example.com,x,y\n" if header else ""))
    done = sapa(installation.data, "import", "customers", str(file), "--company", str(company.live), "--json")
    assert named in done.sentence()
    assert await list_all(api, "customers") == []
