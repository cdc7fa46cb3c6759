"""`sapa areas import` and the dictionary it fills, on an installation of its own, because all companies share the
dictionary."""

import tarfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from sapa.db.pool import Database, open_database
from sapa.shipping.areas.files import MAX_BYTES
from sapa.shipping.areas.importing import index_missing
from tests.cli.command import Outcome, sapa, sapa_process
from tests.conftest import Installation, connect, start_installation, stop_installation
from tests.factories import make_company, make_key
from tests.shipping.areas.area_packages import (
    PLACES,
    build_lists,
    write_folder,
    write_tarball,
    write_zip,
)
from tests.shipping.parcels import DELIVERY, SENDER, body_of, create, field_of
from tests.shipping.quotes.quote_steps import connect_live


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    running = start_installation(tmp_path_factory.mktemp("areas") / "data", SAPA_PROCESSES="1")
    yield running
    assert stop_installation(running) == 0


@pytest.fixture(scope="module")
async def own_database(own: Installation) -> AsyncIterator[Database]:
    async with open_database(own.server.app_url) as database:
        yield database


@pytest.fixture
async def own_api(own: Installation, own_database: Database) -> AsyncIterator[httpx.AsyncClient]:
    key = await make_key(own_database, (await make_company(own_database)).test)
    async with connect(own, key.raw) as client:
        yield client


def import_areas(own: Installation, file: Path, *options: str) -> Outcome:
    return sapa(own.data, "areas", "import", str(file), "--accept-licence", *options)


async def list_names(client: httpx.AsyncClient, level: str, **params: str) -> list[str]:
    response = await client.get(f"/shipping/coverage/{level}", params={"provider": "custom", **params})
    assert response.status_code == 200, response.text
    return [area["name"] for area in response.json()["data"]]


async def test_the_dictionary_serves_providers_without_a_list_once_it_was_imported(
    own: Installation, own_api: httpx.AsyncClient, tmp_path: Path
) -> None:
    for provider in ("custom", "parcel_carrier", "instant_carrier"):
        refused = await own_api.get("/shipping/coverage/provinces", params={"provider": provider})
        assert refused.status_code == 400
        assert "import area data" in refused.json()["error"]["message"]

    file = write_tarball(tmp_path / "areas.tgz", build_lists())
    done = import_areas(own, file, "--json").json()
    assert (done["created"], done["updated"], done["retired"], done["wasKnown"]) == (len(PLACES), 0, 0, False)
    assert (done["dataset"]["name"], done["dataset"]["areas"]) == ("small-area-data 0.0.1", len(PLACES))

    for provider in ("custom", "parcel_carrier", "instant_carrier"):
        assert await list_names(own_api, "provinces", provider=provider) == ["Selatan", "Utara"]
    response = await own_api.get("/shipping/coverage/cities", params={"provider": "custom", "provinceId": "11"})
    assert response.json()["data"] == [
        {"id": 1101, "name": "Kabupaten Bukit", "parentId": 11, "zip": None},
        {"id": 1171, "name": "Kota Pantai", "parentId": 11, "zip": None},
    ]
    assert await list_names(own_api, "districts", cityId="1101") == ["Bukit Atas"]
    assert await list_names(own_api, "sub-districts", districtId="110101") == ['Desa "Baru", Atas', "Sidomulyo"]
    assert await list_names(own_api, "sub-districts", districtId="117101", search="elok") == ["Kampung Élok"]
    for params in ({"cityId": "9901"}, {"cityId": "11"}, {"cityId": "x"}, {"cityId": "9" * 60}):
        unknown = await own_api.get("/shipping/coverage/districts", params={"provider": "custom", **params})
        assert unknown.status_code == 404

    again = import_areas(own, file, "--json").json()
    assert again == {**done, "created": 0, "wasKnown": True}
    assert "nothing changed" in import_areas(own, file).out


async def test_the_dictionary_names_the_areas_of_a_shipment(
    own: Installation, own_api: httpx.AsyncClient, tmp_path: Path
) -> None:
    import_areas(own, write_tarball(tmp_path / "areas.tgz", build_lists(), "0.0.2"))
    delivery = {**DELIVERY, "city": None, "kecamatanId": 117101, "kelurahanId": 1171011001}
    shipment = await create(own_api, "custom", delivery=delivery)
    assert "Kota Pantai" in (await own_api.get(f"{own.address}{shipment['trackingPage']}")).text


async def test_a_newer_file_changes_adds_and_retires(
    own: Installation, own_api: httpx.AsyncClient, tmp_path: Path
) -> None:
    import_areas(own, write_tarball(tmp_path / "old.tgz", build_lists(), "1.0.0"))
    newer = {code: name for code, name in PLACES.items() if not code.startswith("12")}
    newer |= {"11.71": "Kota Pantai Indah", "13": "Tengah"}
    done = import_areas(own, write_tarball(tmp_path / "new.tgz", build_lists(newer), "1.1.0"), "--json").json()
    assert (done["created"], done["updated"], done["retired"]) == (1, 1, 4)
    assert await list_names(own_api, "provinces") == ["Tengah", "Utara"]
    assert await list_names(own_api, "cities", provinceId="11") == ["Kabupaten Bukit", "Kota Pantai Indah"]
    gone = await own_api.get("/shipping/coverage/cities", params={"provider": "custom", "provinceId": "12"})
    assert gone.status_code == 404

    back = import_areas(own, write_tarball(tmp_path / "old.tgz", build_lists(), "1.0.0"), "--json").json()
    assert (back["wasKnown"], back["updated"], back["retired"]) == (False, 5, 1)
    assert await list_names(own_api, "provinces") == ["Selatan", "Utara"]
    listed = sapa(own.data, "areas", "list", "--json").json()
    assert [one["name"] for one in listed][:3] == [
        "small-area-data 1.0.0", "small-area-data 1.1.0", "small-area-data 1.0.0"
    ]  # fmt: skip


@pytest.mark.parametrize("write", [write_zip, write_folder])
def test_a_zip_or_a_folder_of_the_lists_will_do(own: Installation, tmp_path: Path, write: Any) -> None:
    done = import_areas(own, write(tmp_path / "places", build_lists()), "--json").json()
    assert done["dataset"]["areas"] == len(PLACES)
    assert import_areas(own, tmp_path / "places", "--json").json()["wasKnown"]


async def test_a_carriers_own_list_is_preferred_to_the_dictionary(
    own: Installation, own_api: httpx.AsyncClient, tmp_path: Path
) -> None:
    import_areas(own, write_tarball(tmp_path / "areas.tgz", build_lists(), "2.0.0"))
    assert "Utara" in await list_names(own_api, "provinces")
    carriers = await list_names(own_api, "provinces", provider="aggregator_carrier")
    assert "DKI Jakarta" in carriers
    assert "Utara" not in carriers


async def test_a_carrier_that_lists_only_some_levels_is_helped_out(
    own: Installation, own_database: Database, tmp_path: Path
) -> None:
    """Biteship finds districts by name and has no hierarchy below provinces."""
    import_areas(own, write_tarball(tmp_path / "areas.tgz", build_lists(), "2.1.0"))
    company = (await make_company(own_database)).live
    await connect_live(own, own_database, company, "aggregator_carrier", "biteship", api_key="planted-secret-key")
    key = await make_key(own_database, company)
    async with connect(own, key.raw) as client:
        assert await list_names(client, "provinces", provider="aggregator_carrier") == ["Selatan", "Utara"]
        found = await list_names(client, "districts", provider="aggregator_carrier", cityId="1101")
        assert found == ["Bukit Atas"]
        bukit = {"kecamatanId": 110101, "kelurahanId": 1101012002}
        ends: dict[str, Any] = {"sender": {**SENDER, **bukit}, "delivery": {**DELIVERY, **bukit}}
        assert await create(client, "aggregator_carrier", **ends)
        ends["delivery"]["kelurahanId"] = 1171011001
        wrong = await client.post("/shipping/shipments", json=body_of("aggregator_carrier", **ends))
    assert field_of(wrong) == "delivery.kelurahanId"


async def search(client: httpx.AsyncClient, q: str, provider: str = "custom") -> list[str]:
    response = await client.get("/shipping/coverage/search", params={"q": q, "provider": provider})
    assert response.status_code == 200, response.text
    return [f"{area['subDistrictId']} {area['label']}" for area in response.json()["data"]]


async def test_the_dictionary_is_searched_by_words_of_every_level(
    own: Installation, own_database: Database, tmp_path: Path
) -> None:
    villages = b"code,district_code,name,postal_code\n" + b"".join(
        [
            b"11.01.01.2001,11.01.01,Sidomulyo,20111\n",
            b"11.71.01.1001,11.71.01,Kampung \xc3\x89lok,20222\n",
            b"12.01.01.2001,12.01.01,Sidomulyo,none\n",
        ]
    )
    import_areas(own, write_tarball(tmp_path / "areas.tgz", spoil("villages.csv", villages), "2.2.0"))
    bukit = "1101012001 Sidomulyo, Bukit Atas, Kabupaten Bukit, Utara, 20111"
    lembah = "1201012001 Sidomulyo, Lembah Dalam, Kabupaten Lembah, Selatan"
    elok = "1171011001 Kampung Élok, Pantai Barat, Kota Pantai, Utara, 20222"
    async with connect(own, (await make_key(own_database, (await make_company(own_database)).live)).raw) as client:
        assert sorted(await search(client, "sidomulyo")) == [bukit, lembah]
        assert await search(client, "Sidomulyo, kab. LEMBAH") == [lembah]
        assert await search(client, "utara sido") == [bukit]
        assert await search(client, "sidomulio lemba") == [lembah]
        assert await search(client, "isdomulyo bukti") == [bukit]
        assert await search(client, "elok") == [elok]
        assert await search(client, "20222") == [elok]
        assert await search(client, "20223") == []
        assert await search(client, "sidmlyo") == []
        assert await search(client, "' | & !") == []
    gone = {code: name for code, name in PLACES.items() if not code.startswith("12")}
    import_areas(own, write_tarball(tmp_path / "fewer.tgz", build_lists(gone), "2.2.1"))
    async with connect(own, (await make_key(own_database, (await make_company(own_database)).live)).raw) as client:
        assert await search(client, "sidomulyo") == [bukit.removesuffix(", 20111")]


async def test_what_is_found_has_the_ids_of_the_carrier(
    own: Installation, own_database: Database, tmp_path: Path
) -> None:
    import_areas(own, write_tarball(tmp_path / "areas.tgz", build_lists(), "2.3.0"))
    company = (await make_company(own_database)).live
    await connect_live(own, own_database, company, "aggregator_carrier", "kiriminaja", api_key="planted-secret-key")
    lists = {
        ("provinces", ""): {"id": 7, "name": "Utara", "parent_id": None},
        ("cities", "7"): {"id": 71, "name": "Bukit", "parent_id": 7},
        ("districts", "71"): {"id": 711, "name": "BUKIT ATAS", "parent_id": 71},
        ("sub-districts", "711"): {"id": 7111, "name": "Sido Mulyo", "parent_id": 711},
    }
    async with own_database.transaction() as tx:
        for (level, parent), area in lists.items():
            await tx.execute(
                "INSERT INTO coverage_cache (company_id, adapter, level, parent, areas) VALUES ($1, $2, $3, $4, $5)",
                company, "kiriminaja", level, parent, msgspec.json.encode([area]),
            )  # fmt: skip
    async with connect(own, (await make_key(own_database, company)).raw) as client:
        found = await search(client, "sidomulyo", "aggregator_carrier")
        assert found == ["7111 Sidomulyo, Bukit Atas, Kabupaten Bukit, Utara"], "only what the carrier serves"


async def test_a_dictionary_that_was_imported_before_is_indexed_by_the_worker(
    own: Installation, own_database: Database, tmp_path: Path
) -> None:
    import_areas(own, write_tarball(tmp_path / "areas.tgz", build_lists(), "2.4.0"))
    async with own_database.transaction() as tx:
        await tx.execute("DELETE FROM area_words")
        await tx.execute("DELETE FROM area_spellings")
    async with connect(own, (await make_key(own_database, (await make_company(own_database)).live)).raw) as client:
        assert await search(client, "sidomulyo") == []
        await index_missing(own_database)
        assert len(await search(client, "sidomulio")) == 2
        async with own_database.transaction() as tx:  # as if it had been stopped after a batch
            await tx.execute("DELETE FROM area_words WHERE code = (SELECT max(code) FROM area_words)")
        assert len(await search(client, "sidomulyo")) == 1
        await index_missing(own_database)
        assert len(await search(client, "sidomulyo")) == 2


def test_the_licence_is_shown_and_has_to_be_accepted(own: Installation, tmp_path: Path) -> None:
    file = write_tarball(tmp_path / "areas.tgz", build_lists(), "3.0.0")
    refused = sapa_process(own.data, "areas", "import", str(file))
    assert refused.code == 1
    assert "Open Database License (ODbL) 1.0" in refused.err
    assert "# ODC Open Database License (ODbL)" in refused.err, "the file's own words as well"
    assert "--accept-licence" in refused.err
    assert "3.0.0" not in sapa(own.data, "areas", "list").out
    quiet = sapa(own.data, "areas", "import", str(file), "--json")
    assert "--accept-licence" in quiet.sentence()
    done = import_areas(own, file)
    assert done.code == 0
    assert "Open Database License" in done.err
    assert f"small-area-data 3.0.0: {len(PLACES)} areas" in done.out
    assert "not a known release" in done.out


def spoil(name: str, content: bytes) -> dict[str, bytes]:
    return {**build_lists(), name: content}


@pytest.mark.parametrize(
    ("lists", "says"),
    [
        ({"provinces.csv": b"code,name\n11,Utara\n"}, "lacks regencies.csv, districts.csv, villages.csv"),
        (spoil("provinces.csv", b"id,title\n11,Utara\n"), "provinces.csv, line 2: expected a code of 2 digits"),
        (spoil("provinces.csv", b"code,name\n11,Utara\n12,\n"), "provinces.csv, line 3"),
        (spoil("provinces.csv", b"code,name\n11,Utara\n11,Selatan\n"), "line 3: the code 11 appears twice"),
        (spoil("regencies.csv", b"code,province_code,name\n99.01,99,X\n"), "the code 9901 has no parent"),
        (spoil("villages.csv", b"code,district_code,name\n11.01.01,11.01,X\n"), "a code of 10 digits"),
        (
            spoil("villages.csv", b"code,district_code,name\n11.01.01.2001,11.01.01,\xff\n"),
            "villages.csv cannot be read",
        ),
        (spoil("villages.csv", b'code,district_code,name\n11.01.01.2001,11.01.01,"x\n'), "villages.csv cannot be read"),
        (spoil("villages.csv", b"x" * (MAX_BYTES + 1)), "is larger than"),
        (spoil("villages.csv", b""), "villages.csv contains no areas"),
        (spoil("districts.csv", b"code,regency_code,name\n"), "districts.csv contains no areas"),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused_whole(
    own: Installation, tmp_path: Path, lists: dict[str, bytes], says: str
) -> None:
    before = sapa(own.data, "areas", "list", "--json").json()
    assert says in import_areas(own, write_tarball(tmp_path / "areas.tgz", lists)).err
    assert sapa(own.data, "areas", "list", "--json").json() == before


def test_what_is_no_archive_is_refused_in_one_sentence(own: Installation, tmp_path: Path) -> None:
    (tmp_path / "text.tgz").write_bytes(b"not an archive")
    assert "neither a package's tarball nor a zip" in import_areas(own, tmp_path / "text.tgz").sentence()
    assert "cannot be read" in import_areas(own, tmp_path / "nothing.tgz").sentence()
    with tarfile.open(tmp_path / "link.tgz", "w:gz") as archive:
        link = tarfile.TarInfo("package/data/provinces.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    assert "lacks provinces.csv" in import_areas(own, tmp_path / "link.tgz").sentence()


@pytest.mark.long
async def test_91599_places_come_in_whole(own: Installation, own_database: Database, tmp_path: Path) -> None:
    """As many areas per level as the published file has."""
    places = build_country()
    assert len(places) == 91_599
    done = import_areas(own, write_tarball(tmp_path / "areas.tgz", build_lists(places), "4.0.0"), "--json").json()
    assert done["dataset"]["areas"] == 91_599
    async with own_database.connection() as db:
        counts = await db.fetch("SELECT count(*) FROM areas WHERE retired_at IS NULL GROUP BY level ORDER BY level")
        left = await db.fetchval("SELECT count(*) FROM area_arrivals")
    assert ([row[0] for row in counts], left) == ([38, 514, 7_285, 83_762], 0)


def build_country() -> dict[str, str]:
    provinces = [f"{number}" for number in range(11, 49)]
    regencies = [f"{provinces[n % 38]}.{n // 38 + 1:02}" for n in range(514)]
    districts = [f"{regencies[n % 514]}.{n // 514 + 1:02}" for n in range(7_285)]
    villages = [f"{districts[n % 7_285]}.{2_001 + n // 7_285}" for n in range(83_762)]
    return {code: f"Tempat {code}" for code in (*provinces, *regencies, *districts, *villages)}
