"""What the address of an installation itself shows."""

import re
from datetime import UTC, datetime
from html import unescape

import httpx
import pytest

from sapa.console.public_pages import build_security_text
from tests.conftest import TLS, Installation
from tests.console.own import open_own

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def get(installation: Installation, path: str, **headers: str) -> httpx.Response:
    return httpx.get(installation.address + path, headers=headers, verify=TLS, timeout=120)


@pytest.mark.smoke
def test_the_start_page_says_what_this_is_and_leads_on(installation: Installation) -> None:
    page = get(installation, "/")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "customer-engagement platform" in page.text
    assert len(page.content) < 4096
    for link in set(re.findall(r'href="([^"?]+)', page.text)) - {"/docs/"}:  # which is built apart: tests/docs reads it
        assert get(installation, link).status_code in {200, 303}, link
    for link in ("/console", "/docs/", "/customer/v1/docs", "/messaging/v1/docs"):
        assert f'href="{link}"' in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY"


def test_the_start_page_is_in_the_reader_s_language(installation: Installation) -> None:
    page = get(installation, "/", **{"accept-language": "id-ID,id;q=0.9"})
    assert '<html lang="id">' in page.text
    assert "instalasi Sapa" in page.text


def test_robots_stay_away(installation: Installation) -> None:
    page = get(installation, "/robots.txt")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert page.text == "User-agent: *\nAllow: /$\nDisallow: /\n"


def test_security_txt_names_the_start_page_unless_a_contact_is_set(installation: Installation) -> None:
    page = get(installation, "/.well-known/security.txt")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    fields = dict(line.split(": ", 1) for line in page.text.splitlines())
    assert fields["Contact"] == f"{installation.address}/#security"
    assert 'id="security"' in get(installation, "/").text
    left = datetime.fromisoformat(fields["Expires"]) - datetime.now(UTC)
    assert 80 < left.days < 365
    assert fields["Canonical"] == f"{installation.address}/.well-known/security.txt"


async def test_the_operator_s_contact_is_named(installation: Installation) -> None:
    variables = {"SAPA_PUBLIC_URL": "https://probe", "SAPA_SECURITY_CONTACT": "security@shop.example"}
    async with open_own(installation, **variables) as client:
        text = (await client.get("https://probe/.well-known/security.txt")).text
        page = await client.get("https://probe/")
    assert "Contact: mailto:security@shop.example\n" in text
    assert 'href="mailto:security@shop.example"' in page.text
    assert page.headers["strict-transport-security"]


def test_the_fields_are_those_of_the_standard() -> None:
    assert build_security_text("https://sapa.example", None, NOW) == (
        "Contact: https://sapa.example/#security\n"
        "Expires: 2026-05-30T00:00:00Z\n"
        "Preferred-Languages: en, id\n"
        "Canonical: https://sapa.example/.well-known/security.txt\n"
    )


@pytest.mark.parametrize("path", ["/", "/robots.txt", "/.well-known/security.txt"])
def test_they_can_only_be_read(installation: Installation, path: str) -> None:
    assert httpx.head(installation.address + path, verify=TLS).status_code == 200
    assert httpx.post(installation.address + path, verify=TLS).status_code == 405


@pytest.mark.parametrize(("language", "words"), [("en", "You're offline"), ("id", "Anda sedang offline")])
def test_the_page_for_being_offline_is_nobody_s(installation: Installation, language: str, words: str) -> None:
    page = get(installation, f"/console/offline/{language}", cookie="sapa_session=x", **{"accept-language": "fr"})
    assert (page.status_code, unescape(page.text).count(f"<h1>{words}</h1>")) == (200, 1)
    assert f'<html lang="{language}">' in page.text
    assert 'rel="icon"' in page.text, "browsers would ask for one that is not there"
    assert "set-cookie" not in page.headers
    assert "token" not in page.text
    assert get(installation, "/console/offline/fr").status_code == 404


def test_the_service_worker_may_run_for_the_console_only(installation: Installation) -> None:
    worker = get(installation, "/console/worker.js")
    assert (worker.status_code, worker.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert worker.headers["service-worker-allowed"] == "/console"
    assert worker.headers["cache-control"] == "no-cache"
    assert "script-src 'self'" in worker.headers["content-security-policy"]
