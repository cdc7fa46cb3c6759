"""What an installation that can be reached over a network leaves open."""

from pathlib import Path

import pytest

from sapa.runtime.exposure import is_loopback, list_exposures
from sapa.settings import read_settings

EVERYWHERE = "0.0.0.0"  # noqa: S104


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_the_loopback_is_reached_by_this_machine_only(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", EVERYWHERE, "::", "192.0.2.1", "2001:db8::1", "sapa.example.com", "127.0.0.1.x"])
def test_other_hosts_may_be_reached_from_elsewhere(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, []),
        ({"SAPA_PUBLIC_URL": "https://sapa.example.com"}, []),
        ({"SAPA_PUBLIC_URL": "http://127.0.0.1:9000"}, []),
        ({"SAPA_PUBLIC_URL": "http://localhost:9000"}, []),
        ({"SAPA_PUBLIC_URL": "http://sapa.example.com"}, ["public URL"]),
        ({"SAPA_HOST": EVERYWHERE}, ["network"]),
        ({"SAPA_HOST": "::", "SAPA_PUBLIC_URL": "http://sapa.example.com"}, ["network", "public URL"]),
        ({"SAPA_HOST": EVERYWHERE, "SAPA_TRUSTED_PROXIES": "10.0.0.1"}, ["public URL"]),
        (
            {
                "SAPA_HOST": EVERYWHERE,
                "SAPA_TRUSTED_PROXIES": "10.0.0.1",
                "SAPA_PUBLIC_URL": "https://sapa.example.com",
            },
            [],
        ),
        ({"SAPA_HOST": EVERYWHERE, "SAPA_TLS_CERT": __file__, "SAPA_TLS_KEY": __file__}, []),
        ({"SAPA_METRICS_LISTEN": "0.0.0.0:9100"}, ["metrics"]),
        ({"SAPA_WORKER_LISTEN": "0.0.0.0:9101"}, ["worker"]),
        ({"SAPA_WORKER_LISTEN": "127.0.0.1:9101"}, []),
        ({"SAPA_SANDBOX_SMTP_LISTEN": "0.0.0.0:2525"}, ["sandbox mail"]),
        ({"SAPA_SANDBOX_SMTP_LISTEN": "127.0.0.1:2525"}, []),
        ({"SAPA_METRICS_LISTEN": "[::1]:9100"}, []),
        ({"SAPA_METRICS_LISTEN": "0.0.0.0:9100", "SAPA_METRICS_TOKEN": 16 * "t"}, []),
    ],
)
def test_what_is_open_is_found(variables: dict[str, str], found: list[str]) -> None:
    exposures = list_exposures(read_settings(variables))
    assert [exposure.what for exposure in exposures] == found
    assert all(exposure.fix.endswith(".") for exposure in exposures)


def test_an_exposure_says_what_to_do() -> None:
    (network, *_) = list_exposures(read_settings({"SAPA_HOST": EVERYWHERE, "SAPA_DATA": str(Path.cwd())}))
    assert network.sentence == (
        "network: listens on 0.0.0.0 without TLS. Set SAPA_TLS_CERT and SAPA_TLS_KEY, or put a proxy with TLS in front"
        " and name it in SAPA_TRUSTED_PROXIES."
    )
