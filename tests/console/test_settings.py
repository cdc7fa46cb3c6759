"""The company, its test clock, its loyalty program and its templates at the console."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from sapa.console.template_forms import CODE_BUTTONS, list_places
from sapa.db.pool import Database
from sapa.people import actions as people
from sapa.people.types import Role
from tests.cli.command import sapa
from tests.conftest import Installation, connect
from tests.console.people import make_person, open_browser, read_token
from tests.factories import Environments, make_company, make_key


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


async def test_regional_settings_are_changed(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    token, path = await read_token(owner), "/live/settings/company/regional"
    form = {"token": token, "timeZone": "Asia/Makassar", "language": "en", "currency": "IDR", "country": "ID"}
    assert (await owner.post(path, data=form)).status_code == 303
    assert (await api.get("/company")).json()["data"]["timeZone"] == "Asia/Makassar"
    assert 'value="Asia/Makassar"' in (await owner.get("/live/settings/company")).text
    wrong = await owner.post(path, data=form | {"timeZone": "Mars/Olympus"})
    assert wrong.status_code == 400
    assert 'id="timeZone-problem"' in wrong.text
    assert 'value="Mars/Olympus"' in wrong.text


async def test_carts_become_orders_when_an_owner_says_so(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    token, path, box = await read_token(owner), "/live/settings/company/carts", 'name="cartOrders" value="1"'
    assert f"{box}>" in (await owner.get("/live/settings/company")).text
    assert (await owner.post(path, data={"token": token, "cartOrders": "1"})).status_code == 303
    assert (await api.get("/company")).json()["data"]["cartOrders"] is True
    assert f"{box} checked>" in (await owner.get("/live/settings/company")).text
    assert (await owner.post(path, data={"token": token})).status_code == 303
    assert (await api.get("/company")).json()["data"]["cartOrders"] is False


async def test_an_owner_renames_the_company_and_a_developer_does_not(
    installation: Installation, database: Database, company: Environments, owner: httpx.AsyncClient
) -> None:
    page, name = "/live/settings/company", f"Toko {company.live}"
    token = await read_token(owner)
    taken = await make_company(database)
    refused = await owner.post(page, data={"token": token, "name": taken.name})
    assert refused.status_code == 409
    assert "A company with this name already exists" in refused.text
    assert 'id="name-problem"' in (await owner.post(page, data={"token": token, "name": "x" * 101})).text
    assert (await owner.post(page, data={"token": token, "name": name})).status_code == 303
    assert name in (await owner.get("/test")).text
    assert "Company renamed" in (await owner.get("/live/audit")).text
    async with open_browser(installation, await make_person(database, company, Role.DEVELOPER)) as developer:
        form = {"token": await read_token(developer), "name": "Other"}
        assert 'name="name"' not in (await developer.get(page)).text
        assert (await developer.post(page, data=form)).status_code == 403


async def test_agents_of_a_company_with_many_people_are_still_one_small_page(
    database: Database, company: Environments, owner: httpx.AsyncClient
) -> None:
    page, token = "/test/settings/agents", await read_token(owner)
    async with database.transaction() as tx:
        organisation = await people.get_organisation(tx, company.live)
        for number in range(200):
            await people.invite(tx, organisation, f"{number}-{company.live}@toko.example", f"Sari {number}", Role.AGENT)
        members = await people.list_members(tx, organisation)
    for number in range(25):
        form = {"token": token, "name": f"Agent {number}", "type": "human", "userId": str(members[number].id)}
        assert (await owner.post(page, data=form)).status_code == 303
    listed = (await owner.get(page)).text
    assert len(listed) < 100_000
    agent_id = re.findall(r'id="agent-(\d+)"', listed)[0]
    chosen = (await owner.get(f"{page}?person={agent_id}")).text
    assert chosen.count(f'value="{members[100].id}"') == 1 + listed.count(f'value="{members[100].id}"')
    form = {"token": token, "name": "Renamed", "userId": re.findall(r'name="userId" value="(\d+)"', listed)[0]}
    assert (await owner.post(f"{page}/{agent_id}", data=form)).status_code == 303


async def test_the_clock_of_the_test_environment_is_moved_and_set_back(owner: httpx.AsyncClient) -> None:
    token, page = await read_token(owner), "/test/settings/company"
    form = {"token": token, "amount": "25", "unit": "hours"}
    assert (await owner.post("/test/settings/clock", data=form)).status_code == 303
    assert "1 d 1 h 0 min ahead" in (await owner.get(page)).text
    assert (await owner.post("/live/settings/clock", data=form)).status_code == 409
    for wrong in ({"amount": "0"}, {"amount": "x"}, {"unit": "years"}, {"amount": "900000", "unit": "days"}):
        assert (await owner.post("/test/settings/clock", data=form | wrong)).status_code == 400
    assert (await owner.post("/test/settings/clock", data={"token": token, "reset": "1"})).status_code == 303
    assert "It shows the real time" in (await owner.get(page)).text
    assert (await owner.get("/test/audit")).text.count("Test clock moved") == 2


async def test_the_words_of_consent_are_changed_and_a_mistake_is_shown(
    installation: Installation, database: Database, company: Environments, owner: httpx.AsyncClient
) -> None:
    token, page = await read_token(owner), "/live/settings/consent"
    form = {
        "token": token,
        "stopWords": "Jangan kirim\r\n\r\nCukup",
        "startWords": "",
        "stopReply": "Baik.",
        "startReply": "",
        "automaticMarketing": "not_refused",
    }
    assert (await owner.post(page, data=form)).status_code == 303
    wrong = await owner.post(page, data=form | {"startWords": "cukup"})
    assert wrong.status_code == 400
    assert "this word means the opposite" in wrong.text
    assert "Jangan kirim" in wrong.text
    async with connect(installation, (await make_key(database, company.live)).raw) as api:
        settings = (await api.get("/consent-settings")).json()["data"]
    assert settings == {
        "stopWords": ["Jangan kirim", "Cukup"],
        "startWords": [],
        "stopReply": "Baik.",
        "startReply": None,
        "automaticMarketing": "not_refused",
    }
    assert "Cukup" in (await owner.get(page)).text


async def test_the_loyalty_program_is_changed_and_mistakes_are_shown_at_their_fields(
    installation: Installation, database: Database, company: Environments, owner: httpx.AsyncClient
) -> None:
    token, page = await read_token(owner), "/live/settings/loyalty"
    form = {
        "token": token,
        "earnOn": "fulfilled",
        "rounding": "ceil",
        "expiryMonths": "12",
        "reservationTtlSeconds": "600",
    }
    assert (await owner.post(page, data=form)).status_code == 303
    wrong = await owner.post(page, data=form | {"expiryMonths": "1201"})
    assert wrong.status_code == 400
    assert 'id="expiryMonths-problem"' in wrong.text
    assert 'value="1201"' in wrong.text
    tiers = {"token": token, "amount": ["10000", "", "299000.50"], "points": ["1.000", "", "40"]}
    assert (await owner.post(f"{page}/tiers", data=tiers)).status_code == 303
    twice = await owner.post(f"{page}/tiers", data=tiers | {"amount": ["10000", "10000", ""], "points": ["1", "2", ""]})
    assert twice.status_code == 400
    assert "repeats" in twice.text
    endless = await owner.post(f"{page}/tiers", data=tiers | {"amount": ["1e99999999", "", ""]})
    assert "enter an amount, like 10,000" in endless.text
    async with connect(installation, (await make_key(database, company.live)).raw) as api:
        settings = (await api.get("/loyalty/settings")).json()["data"]
        conversion = (await api.get("/loyalty/point-conversion")).json()["data"]
    assert settings == {
        "enabled": False,
        "earnOn": "fulfilled",
        "rounding": "ceil",
        "expiryMonths": 12,
        "reservationTtlSeconds": 600,
    }
    assert conversion["tiers"] == [
        {"currencyAmount": 10000, "points": 1000},
        {"currencyAmount": 299000.5, "points": 40},
    ]
    assert (await owner.get("/live/audit")).text.count("Settings changed") == 2


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ["in the text {{1}}", "in the heading {{1}}", "in button 2 the end of https://toko.example/{{1}}"]),
        ("id", ["di teks {{1}}", "di judul {{1}}", "di tombol 2 akhir https://toko.example/{{1}}"]),
    ],
)
def test_the_places_of_parameters_are_in_words(language: str, words: list[str]) -> None:
    buttons = [
        {"type": "quick_reply", "text": "Ya"},
        {"type": "url", "text": "Lihat", "url": "https://toko.example/{{1}}", "example": "7"},
    ]
    template = {
        "category": "UTILITY", "parameterFormat": "POSITIONAL", "body": "Halo {{1}}, hai", "buttons": buttons,
        "header": {"type": "text", "text": "Pesanan {{1}}"},
    }  # fmt: skip
    assert [f"{place.place} {place.label}" for place in list_places(template, language)] == words


async def test_a_template_is_made_previewed_changed_and_deleted(
    installation: Installation, database: Database, owner: httpx.AsyncClient
) -> None:
    form = {
        "token": await read_token(owner),
        "name": "order_update",
        "language": "id",
        "category": "UTILITY",
        "header": "text",
        "header_text": "Pesanan <Anda>",
        "body": "Halo {{1}},\r\npesanan {{2}} dikirim.",
        "footer": "Toko",
        "button_type": ["url", "quick_reply"],
        "button_text": ["Lihat", ""],
        "button_target": ["https://toko.example", ""],
        "button_more": ["", ""],
    }
    wrong = await owner.post("/test/templates", data=form | {"body": "Halo {{2}}"})
    assert wrong.status_code == 400
    assert 'id="body-problem"' in wrong.text
    assert "Halo {{2}}</textarea>" in wrong.text
    created = await owner.post("/test/templates", data=form)
    assert created.status_code == 303
    page = created.headers["location"].removeprefix("/console")
    assert ">approved<" in (await owner.get(page)).text
    shown = (await owner.get(page, params={"param": ["Ayu", "INV-7"]})).text
    assert "Pesanan &lt;Anda&gt;" in shown
    assert "Halo Ayu,\npesanan INV-7 dikirim." in shown
    assert '<span class="quiet">in the text {{2}}</span>' in shown
    plain = {"button_text": ["", ""], "button_target": ["", ""]}
    assert (await owner.post(page, data=form | plain | {"body": "Halo {{1}}, hai!"})).status_code == 303
    listed = (await owner.get("/test/templates?search=order")).text
    assert "Halo {{1}}, hai!" in listed
    assert "order_update" not in (await owner.get("/live/templates")).text
    foreign = await owner.get(page.replace("/test/", "/live/"))
    assert foreign.status_code == 404
    assert (await owner.post(f"{page}/delete", data=form)).status_code == 303
    assert (await owner.get(page)).status_code == 404
    audit = (await owner.get("/test/audit")).text
    assert all(f"Template {verb}" in audit for verb in ("created", "changed", "deleted"))


async def test_templates_with_cards_and_codes_are_made_and_shown(owner: httpx.AsyncClient) -> None:
    token = await read_token(owner)
    button = {"button_type": ["quick_reply"], "button_text": [""], "button_target": [""], "button_more": [""]}
    carousel = {
        "token": token,
        "name": "kopi_pilihan",
        "language": "id",
        "category": "MARKETING",
        "header": "none",
        "body": "Pilihan kopi minggu ini.",
        **button,
        "card_header": ["image", "image", "image"],
        "card_sample": ["https://toko.example/a.jpg", "https://toko.example/b.jpg", ""],
        "card_body": ["Kopi {{1}} segar.", "Kopi {{1}} enak.", ""],
        "card_examples": ["Gayo", "Toraja", ""],
    }
    for card in ("card0", "card1"):
        carousel |= {
            f"{card}_type": ["url", "quick_reply"],
            f"{card}_text": ["Beli", ""],
            f"{card}_target": ["https://toko.example/p/{{1}}", ""],
            f"{card}_more": ["", ""],
        }
    wrong = await owner.post("/test/templates", data=carousel | {"card_body": ["Kopi {{1}}", "", ""]})
    assert wrong.status_code == 400
    assert 'id="cards[0].body-problem"' in wrong.text
    created = await owner.post("/test/templates", data=carousel)
    assert created.status_code == 303, created.text
    page = created.headers["location"].removeprefix("/console")
    shown = (await owner.get(page)).text
    for words in ("Kopi {{1}} segar.", "Kopi {{1}} enak.", "https://toko.example/b.jpg", "Toraja"):
        assert words in shown
    code = {
        "token": token,
        "name": "kode_masuk",
        "language": "id",
        "category": "AUTHENTICATION",
        "minutes": "5",
        "advice": "on",
        "button_type": ["otp one_tap"],
        "button_text": ["Salin kode"],
        "button_target": [""],
        "button_more": ["com.toko.app K8a/AINcGX7"],
    }
    refused = await owner.post("/test/templates", data=code | {"minutes": "500"})
    assert 'id="authentication.codeExpirationMinutes-problem"' in refused.text
    created = await owner.post("/test/templates", data=code)
    assert created.status_code == 303, created.text
    shown = (await owner.get(created.headers["location"].removeprefix("/console"))).text
    assert "adalah kode verifikasi Anda" in shown
    assert "com.toko.app K8a/AINcGX7" in shown
    assert '<option value="otp one_tap" selected>one-time code: filled in by one tap</option>' in shown
    assert (await owner.post("/test/templates/sync", data={"token": token})).status_code == 303


@pytest.mark.parametrize("kind", list(CODE_BUTTONS))
async def test_a_button_for_a_one_time_code_is_chosen_in_words_and_stays_chosen(
    owner: httpx.AsyncClient, kind: str
) -> None:
    more = "" if kind == "otp copy_code" else "com.toko.app K8a/AINcGX7 | Isi otomatis"
    form = {
        "token": await read_token(owner),
        "name": "kode_masuk",
        "language": "id",
        "category": "AUTHENTICATION",
        "button_type": [kind, "quick_reply"],
        "button_text": ["", ""],
        "button_target": ["", ""],
        "button_more": [more, ""],
    }
    created = await owner.post("/test/templates", data=form)
    assert created.status_code == 303, created.text
    page = created.headers["location"].removeprefix("/console")
    shown = (await owner.get(page)).text
    assert shown.count(f'<option value="{kind}" selected>one-time code: ') == 1
    assert f'name="button_more" maxlength="2000" value="{more}"' in shown
    assert "_tap" not in re.sub(r'value="otp \w+"', "", shown), "no code of the API is read or typed"
    changed = await owner.post(page, data=form | {"minutes": "5"})
    assert changed.status_code == 303, changed.text
    assert f'<option value="{kind}" selected>' in (await owner.get(page)).text


async def test_what_is_wrong_with_a_button_is_said_at_its_part(owner: httpx.AsyncClient) -> None:
    form = {"token": await read_token(owner), "name": "kode_masuk", "language": "id", "button_text": ["Isi"]}
    code = form | {"category": "AUTHENTICATION", "button_type": ["otp zero_tap"], "button_target": [""]}
    for more, words in (("", "Enter 1 to 5 apps"), ("com.toko.app K8a", "11 characters")):
        refused = (await owner.post("/test/templates", data=code | {"button_more": [more]})).text
        problem = r'id="buttons\[0\]\.supportedApps-problem"><p class="problem">([^<]+)'
        (said,) = re.findall(rf'name="button_more"[^>]*aria-invalid="true"[^>]*></label>\s*<div {problem}', refused)
        assert words in said
        assert "zero_tap" not in said
        assert '<option value="otp zero_tap" selected>' in refused
    link = form | {"category": "UTILITY", "body": "Halo.", "button_type": ["url"], "button_more": [""]}
    refused = (await owner.post("/test/templates", data=link | {"button_target": ["toko"]})).text
    assert 'name="button_target" maxlength="2000" value="toko" aria-invalid="true"' in refused


async def test_the_owner_sees_when_the_last_backup_was_made(
    installation: Installation, database: Database, company: Environments, owner: httpx.AsyncClient, tmp_path: Path
) -> None:
    variables = {"SAPA_BACKUP_PASSPHRASE": "correct horse battery staple"}
    made = await asyncio.to_thread(sapa, installation.data, "backup", str(tmp_path), "--json", **variables)
    assert made.code == 0, made.err
    page = (await owner.get("/live/settings/company")).text
    assert "the newest backup was made just now" in re.sub(r"</?time[^>]*>", "", page)
    developer = await make_person(database, company, Role.DEVELOPER)
    async with open_browser(installation, developer) as client:
        assert 'id="backups"' not in (await client.get("/live/settings/company")).text
