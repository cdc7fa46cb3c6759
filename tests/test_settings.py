"""Settings: what can be set, its defaults, and refusals that name the variable."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from sapa.outbound.bucket import BucketAddress, parse_address
from sapa.runtime.metrics_address import list_candidates
from sapa.settings import BadSetting, read_settings


def test_everything_has_a_default() -> None:
    settings = read_settings({})
    assert settings.data == Path("data").absolute()
    assert settings.database.url is None
    assert settings.database.owner_url is None
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8000)
    assert 1 <= settings.server.processes <= 4
    assert settings.server.trusted_proxies == ()
    assert settings.server.cors_origins == ()
    assert settings.server.serves_mcp
    assert settings.server.tls_cert is None
    assert settings.log_level == "info"


def test_everything_can_be_set(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.touch()
    key.touch()
    settings = read_settings(
        {
            "SAPA_DATA": str(tmp_path),
            "SAPA_DATABASE_URL": "postgresql://app@db/sapa",
            "SAPA_DATABASE_OWNER_URL": "postgresql://owner@db/sapa",
            "SAPA_DATABASE_POOL": "25",
            "SAPA_DATABASE_WAIT": "5",
            "SAPA_HOST": "::",
            "SAPA_PORT": "443",
            "SAPA_PROCESSES": "8",
            "SAPA_TLS_CERT": str(cert),
            "SAPA_TLS_KEY": str(key),
            "SAPA_TRUSTED_PROXIES": " 10.0.0.1/8 ,, 2001:db8::1",
            "SAPA_CORS_ORIGINS": "https://a.example, https://b.example",
            "SAPA_MCP": "0",
            "SAPA_PUBLIC_URL": "https://sapa.example/",
            "SAPA_LOG_LEVEL": "DEBUG",
        }
    )
    assert settings.data == tmp_path
    assert settings.database.url == "postgresql://app@db/sapa"
    assert settings.database.owner_url == "postgresql://owner@db/sapa"
    assert settings.database.pool_size == 25
    server = settings.server
    assert (server.host, server.port, server.processes) == ("::", 443, 8)
    assert (server.tls_cert, server.tls_key) == (cert, key)
    assert server.trusted_proxies == (ip_network("10.0.0.0/8"), ip_network("2001:db8::1/128"))
    assert server.cors_origins == ("https://a.example", "https://b.example")
    assert not server.serves_mcp
    assert server.address == "https://sapa.example"
    assert settings.log_level == "debug"


def test_the_owner_s_address_is_the_product_s_unless_given() -> None:
    assert read_settings({"SAPA_DATABASE_URL": "postgresql://x/y"}).database.owner_url == "postgresql://x/y"


@pytest.mark.parametrize("name", ["SAPA_DATA", "SAPA_DATABASE_URL", "SAPA_PORT", "SAPA_PROCESSES", "SAPA_LOG_LEVEL"])
def test_an_empty_variable_is_an_absent_one(name: str) -> None:
    assert read_settings({name: ""}) == read_settings({})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SAPA_PORT", "0"), ("SAPA_PORT", "65536"), ("SAPA_PORT", "http"), ("SAPA_PORT", "-1"), ("SAPA_PORT", "80.0"),
        ("SAPA_PORT", " 80"), ("SAPA_PORT", "８０"), ("SAPA_PROCESSES", "0"), ("SAPA_PROCESSES", "65"),
        ("SAPA_DATABASE_POOL", "1"), ("SAPA_DATABASE_POOL", "201"), ("SAPA_DATABASE_WAIT", "0"),
        ("SAPA_LOG_LEVEL", "loud"),
        ("SAPA_HISTORY_MONTHS", "0"), ("SAPA_HISTORY_MONTHS", "121"),
        ("SAPA_TRACES_URL", "127.0.0.1:4318"), ("SAPA_TRACES_PERCENT", "0"), ("SAPA_TRACES_PERCENT", "101"),
        ("SAPA_WORKER_LISTEN", "9101"), ("SAPA_WORKER_POOL", "9"), ("SAPA_DRAIN_SECONDS", "6"),
        ("SAPA_MESSAGES_MONTHS", "0"),
        ("SAPA_METRICS_LISTEN", "9100"), ("SAPA_METRICS_LISTEN", ":9100"), ("SAPA_METRICS_LISTEN", "127.0.0.1:0"),
        ("SAPA_METRICS_LISTEN", "::1:9100"), ("SAPA_METRICS_LISTEN", "127.0.0.1:65536"),
        ("SAPA_SANDBOX_SMTP_LISTEN", "2525"), ("SAPA_SANDBOX_SMTP_LISTEN", "10.0.0.5"),
        ("SAPA_METRICS_TOKEN", "short"), ("SAPA_METRICS_TOKEN", "with spaces in its text"),
        ("SAPA_SECURITY_CONTACT", "somebody"), ("SAPA_SECURITY_CONTACT", "http://a.example"),
        ("SAPA_SECURITY_CONTACT", "a@b.example\nEvil: yes"),
        ("SAPA_TRUSTED_PROXIES", "10.0.0.0/33"), ("SAPA_TRUSTED_PROXIES", "10.0.0.1, proxy.example"),
        ("SAPA_TLS_CERT", "/nowhere/cert.pem"), ("SAPA_TLS_KEY", "/nowhere/key.pem"),
        ("SAPA_PUBLIC_URL", "sapa.example.com"), ("SAPA_PUBLIC_URL", "https://"), ("SAPA_PUBLIC_URL", "https://a b"),
        ("SAPA_PUBLIC_URL", "https://sapa.example.com?x=1"),
        ("SAPA_CORS_ORIGINS", "shop.example"), ("SAPA_CORS_ORIGINS", "https://shop.example/admin"),
        ("SAPA_SMTP_URL", "http://mail.example"), ("SAPA_SMTP_URL", "smtp://"), ("SAPA_SMTP_URL", "smtp://a:99999"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_used_is_refused_by_the_variable_s_name(name: str, value: str) -> None:
    with pytest.raises(BadSetting, match=f"^{name} .*\\.$"):
        read_settings({name: value})


def test_origins_are_as_browsers_send_them() -> None:
    listed = read_settings({"SAPA_CORS_ORIGINS": "https://Shop.example/, http://localhost:3000,*"}).server.cors_origins
    assert listed == ("https://shop.example", "http://localhost:3000", "*")


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "http://127.0.0.1:8000"), ("0.0.0.0", "http://127.0.0.1:8000"), ("::1", "http://[::1]:8000")],  # noqa: S104
)
def test_the_address_is_one_that_can_be_called(host: str, address: str) -> None:
    assert read_settings({"SAPA_HOST": host}).server.address == address


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file.pem").touch()
    for name in ("SAPA_TLS_CERT", "SAPA_TLS_KEY"):
        with pytest.raises(BadSetting, match="belong together"):
            read_settings({name: str(tmp_path / "file.pem")})


def test_mail_needs_its_server_and_its_sender() -> None:
    both = {"SAPA_SMTP_URL": "smtps://sapa:p%40ss@mail.example:465", "SAPA_MAIL_FROM": "Sapa <no-reply@sapa.example>"}
    assert read_settings(both).mail.sender == both["SAPA_MAIL_FROM"]
    for name, value in both.items():
        with pytest.raises(BadSetting, match="belong together"):
            read_settings({name: value})
    with pytest.raises(BadSetting, match=r"^SAPA_MAIL_FROM .*\.$"):
        read_settings({**both, "SAPA_MAIL_FROM": "Sapa"})


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@one:5432,two:5433/db",
        "postgres://u@[::1]:5432/db?sslmode=require",
        "postgresql:///db?host=/run&user=x",
        "postgresql://u:p%40ss@%2Frun/db",
    ],
)
def test_every_way_to_write_a_database_s_address_is_taken(url: str) -> None:
    assert read_settings({"SAPA_DATABASE_URL": url}).database.url == url


@pytest.mark.parametrize(
    ("text", "host", "port"), [("127.0.0.1:9100", "127.0.0.1", 9100), ("[::1]:1", "::1", 1), ("box:80", "box", 80)]
)
def test_metrics_listen_on_an_address_and_a_port(text: str, host: str, port: int) -> None:
    settings = read_settings({"SAPA_METRICS_LISTEN": text})
    assert settings.metrics.listen == (host, port)
    assert [str(address) for address in list_candidates(settings)] == [text]


def test_the_sandboxs_mail_server_is_off_unless_it_has_an_address() -> None:
    assert read_settings({}).sandbox.smtp_listen is None
    assert read_settings({"SAPA_SANDBOX_SMTP_LISTEN": "10.0.0.5:2525"}).sandbox.smtp_listen == ("10.0.0.5", 2525)


@pytest.mark.parametrize(
    ("text", "contact"),
    [
        ("security@shop.example", "mailto:security@shop.example"),
        ("mailto:security@shop.example", "mailto:security@shop.example"),
        ("https://shop.example/security?x=1", "https://shop.example/security?x=1"),
    ],
)
def test_a_security_contact_is_a_uri(text: str, contact: str) -> None:
    assert read_settings({"SAPA_SECURITY_CONTACT": text}).server.security_contact == contact


def test_a_bucket_is_one_address() -> None:
    url = "https://AKIA:se%2Fcret@s3.example.com:9000/files/shop/a?region=eu-1"
    settings = read_settings({"SAPA_FILES_URL": url, "SAPA_FILES_MAX_MB": "100"})
    assert (settings.files.url, settings.files.max_bytes) == (url, 100 * 1_048_576)
    assert parse_address(url) == BucketAddress(
        "https://s3.example.com:9000", "files", "shop/a", "eu-1", "AKIA", "se/cret"
    )
    plain = read_settings({"SAPA_FILES_URL": "http://[::1]/files"}).files.url
    assert parse_address(plain or "") == BucketAddress("http://[::1]", "files", "", "us-east-1", None, None)
    assert read_settings({}).files.url is None


@pytest.mark.parametrize(
    "url",
    [
        "s3://files",
        "https://s3.example.com",
        "https://key@s3.example.com/files",
        "https:///files",
        "https://a:hush@[/x",
        "https://a:hush@s3.example.com:99999/files",
        "https://a:hush@s3.example.com:0/files",
    ],
)
def test_a_bucket_s_address_that_cannot_be_used_is_refused_without_its_secret(url: str) -> None:
    with pytest.raises(BadSetting, match="SAPA_FILES_URL must be an address such as") as refused:
        read_settings({"SAPA_FILES_URL": url})
    assert "hush" not in str(refused.value)
