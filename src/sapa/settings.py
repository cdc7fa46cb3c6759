"""Everything an operator can set, read once from SAPA_* variables. Imports nothing of Sapa."""

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

Network = IPv4Network | IPv6Network

_UPSTREAM = "SAPA_UPSTREAM_"
_HOST = r"(?:\[[0-9a-fA-F:.%]+\]|[^\[\]:/?@,]*)(?::[0-9]+)?"
_match_smtp_url = re.compile(
    r"smtps?://(?:[^@/\s]+@)?(?:\[[0-9a-fA-F:.]+\]|[0-9A-Za-z._-]+)(?::(?P<port>[0-9]{1,5}))?/?"
).fullmatch
_match_listen_address = re.compile(
    r"(?:\[(?P<bracketed>[0-9a-fA-F:.]+)\]|(?P<host>[0-9A-Za-z._-]+)):(?P<port>[0-9]{1,5})"
).fullmatch
_is_mail_address = re.compile(r"[!#-'*+/-9=?A-Z^-~.-]+@[0-9A-Za-z.-]+").fullmatch
_is_https_url = re.compile(r"https://[!-~]+").fullmatch
_is_public_url = re.compile(r"https?://(?:\[[0-9a-fA-F:.]+\]|[0-9A-Za-z._-]+)(?::[0-9]{1,5})?(?:/[^?#\s]*)?").fullmatch
_is_origin = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#\s]+").fullmatch
_is_token = re.compile(r"[!-~]{16,512}").fullmatch
_is_sender = re.compile(r"(?:[^<>\r\n]*<)?[^\s<>@]+@[^\s<>@]+>?").fullmatch
_match_bucket_url = re.compile(
    r"https?://(?:[^:@/\s]+:[^:@/\s]+@)?(?:\[[0-9a-fA-F:.]+\]|[0-9A-Za-z._-]+)(?::(?P<port>[0-9]{1,5}))?"
    r"/[^/?#\s]+(?:/[^?#\s]*)?(?:\?region=[0-9A-Za-z-]+)?"
).fullmatch
_is_database_url = re.compile(rf"postgres(?:ql)?://(?:[^@/]*@)?{_HOST}(?:,{_HOST})*(?:[/?].*)?").fullmatch


class BadSetting(Exception):
    """A SAPA_* variable whose value cannot be used; the text says which one and how to fix it."""


class DatabaseSettings(Struct, frozen=True):
    url: str | None
    """SAPA_DATABASE_URL: an external PostgreSQL 15–18. By default the embedded server in the data folder is used."""
    owner_url: str | None
    """SAPA_DATABASE_OWNER_URL: the role that owns the tables and runs migrations; by default the URL above."""
    pool_size: int
    """SAPA_DATABASE_POOL: connections of each API process."""
    wait_seconds: int
    """SAPA_DATABASE_WAIT: how many seconds a request waits for one of them before it is refused with 503."""


class ServerSettings(Struct, frozen=True):
    host: str
    """SAPA_HOST: the address to listen on."""
    port: int
    """SAPA_PORT: the port to listen on."""
    processes: int
    """SAPA_PROCESSES: API processes; by default one per core, at most four."""
    tls_cert: Path | None
    """SAPA_TLS_CERT: the certificate chain (PEM), to serve HTTPS without a reverse proxy."""
    tls_key: Path | None
    """SAPA_TLS_KEY: the certificate's private key (PEM)."""
    trusted_proxies: tuple[Network, ...]
    """SAPA_TRUSTED_PROXIES: comma-separated addresses or CIDRs whose X-Forwarded-For is trusted."""
    connections: int
    """SAPA_CONNECTIONS: how many connections all API processes hold at once."""
    connections_per_address: int
    """SAPA_CONNECTIONS_PER_ADDRESS: how many of them one address may hold (for IPv6: one /64); trusted proxies may hold
    all."""
    drain_seconds: int
    """SAPA_DRAIN_SECONDS: how many seconds `sapa api` keeps serving after SIGTERM, while /readyz answers 503, so
    that load balancers send callers elsewhere. In `sapa serve` 0."""
    cors_origins: tuple[str, ...]
    """SAPA_CORS_ORIGINS: comma-separated origins from which browsers may call the API, or `*`. None by default."""
    serves_mcp: bool
    """SAPA_MCP: 0 turns off MCP, with which AI agents use the API at /mcp."""
    public_url: str | None
    """SAPA_PUBLIC_URL: the public address of this installation, for example https://sapa.example.com."""
    security_contact: str | None
    """SAPA_SECURITY_CONTACT: where people report security problems, for security.txt and the start page: an e-mail
    address or an https URL."""

    @property
    def address(self) -> str:
        """The installation's own URL, for links in mail, webhooks and pages."""
        if self.public_url:
            return self.public_url
        host = "127.0.0.1" if self.host in {"0.0.0.0", "::", ""} else self.host  # noqa: S104
        scheme = "https" if self.tls_cert else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"


class MetricsSettings(Struct, frozen=True):
    listen: tuple[str, int] | None
    """SAPA_METRICS_LISTEN: where /metrics is served, for example 10.0.0.5:9100; by default the loopback address and the
    port after SAPA_PORT, or the next free one."""
    token: str | None
    """SAPA_METRICS_TOKEN: the bearer token that /metrics requires. With it, the API's address serves /metrics too."""


class TraceSettings(Struct, frozen=True):
    url: str | None
    """SAPA_TRACES_URL: where traces are sent over OTLP, for example http://127.0.0.1:4318; needs sapa[traces]. Off by
    default."""
    percent: int
    """SAPA_TRACES_PERCENT: how many of a hundred calls are traced."""


class WorkerSettings(Struct, frozen=True):
    listen: tuple[str, int] | None
    """SAPA_WORKER_LISTEN: where `sapa worker` serves /healthz, /readyz and /metrics, for example 10.0.0.5:9101. Off by
    default."""
    pool_size: int
    """SAPA_WORKER_POOL: database connections of a worker."""


class WebhookSettings(Struct, frozen=True):
    allow_insecure: bool
    """SAPA_WEBHOOK_ALLOW_INSECURE: 1 allows webhooks to http and private addresses; for development only."""
    allowed_networks: tuple[Network, ...]
    """SAPA_WEBHOOK_ALLOWED_NETWORKS: comma-separated private addresses or CIDRs that webhooks may reach."""


class SandboxSettings(Struct, frozen=True):
    smtp_listen: tuple[str, int] | None
    """SAPA_SANDBOX_SMTP_LISTEN: where the mail server of test environments listens, for example 0.0.0.0:2525. Off by
    default."""


class MailSettings(Struct, frozen=True):
    smtp_url: str | None
    """SAPA_SMTP_URL: the mail server for invitations, password resets and notices to owners:
    smtp://user:password@host:587 or smtps://…:465."""
    sender: str
    """SAPA_MAIL_FROM: the sender of such mail, for example Sapa <no-reply@example.com>."""


class FileSettings(Struct, frozen=True):
    url: str | None
    """SAPA_FILES_URL: an S3-compatible bucket for files, such as https://KEY:SECRET@s3.example.com/bucket?region=eu-1;
    by default they are stored in PostgreSQL."""
    max_mb: int
    """SAPA_FILES_MAX_MB: the size in MiB of the largest file that can be uploaded, up to 100."""

    @property
    def max_bytes(self) -> int:
        return self.max_mb * 1_048_576


class BackupSettings(Struct, frozen=True):
    url: str | None
    """SAPA_BACKUP_URL: where the worker stores backups: a folder, or an S3-compatible bucket in the form of
    SAPA_FILES_URL. None are made by default."""
    passphrase: str | None
    """SAPA_BACKUP_PASSPHRASE: seals the secret key inside each backup. Store it elsewhere: without it
    nobody can read the secrets of a restored backup."""
    every_hours: int
    """SAPA_BACKUP_HOURS: how many hours pass between backups."""
    most: int
    """SAPA_BACKUP_KEEP: how many backups to keep; the worker deletes older ones."""


class RetentionSettings(Struct, frozen=True):
    """After how many months rows are purged, by kind; by default never."""

    messages: int
    """SAPA_MESSAGES_MONTHS: messages, with what their channels reported; those of open tickets stay."""
    timeline: int
    """SAPA_TIMELINE_MONTHS: entries of customers' timelines."""
    shipment_events: int
    """SAPA_SHIPMENT_EVENTS_MONTHS: what carriers reported about shipments; the shipments stay."""
    audit: int
    """SAPA_AUDIT_MONTHS: entries of the audit log."""
    notices: int
    """SAPA_NOTICES_MONTHS: notices to owners."""

    @property
    def months(self) -> dict[str, int]:
        """Of the kinds that are purged."""
        return {kind: months for kind, months in asdict(self).items() if months}


class Settings(Struct, frozen=True):
    data: Path
    """SAPA_DATA: the folder of the embedded server, its passwords and the secret key."""
    database: DatabaseSettings
    server: ServerSettings
    metrics: MetricsSettings
    worker: WorkerSettings
    traces: TraceSettings
    webhooks: WebhookSettings
    mail: MailSettings
    files: FileSettings
    backups: BackupSettings
    sandbox: SandboxSettings
    upstreams: Mapping[str, str]
    """SAPA_UPSTREAM_: followed by a provider's name, replaces its address:
    SAPA_UPSTREAM_KIRIMINAJA=https://staging.example.com."""
    history_months: int
    """SAPA_HISTORY_MONTHS: how many months the records of send calls are kept, in addition to the current one."""
    retention: RetentionSettings
    secret_key: str | None
    """SAPA_SECRET_KEY: 32 bytes in base64 that encrypt stored secrets. Of several keys, separated by commas, the first
    one encrypts and all decrypt. By default the data folder's own key."""
    log_level: str
    """SAPA_LOG_LEVEL: debug, info, warning or error."""


def read_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this process; raises BadSetting with a sentence that names the variable."""
    url = _url(environ, "SAPA_DATABASE_URL")
    tls_cert, tls_key = _path(environ, "SAPA_TLS_CERT"), _path(environ, "SAPA_TLS_KEY")
    if (tls_cert is None) != (tls_key is None):
        raise BadSetting("SAPA_TLS_CERT and SAPA_TLS_KEY belong together: set both to serve HTTPS, or neither.")
    return Settings(
        data=Path(environ.get("SAPA_DATA") or "data").absolute(),
        database=DatabaseSettings(
            url=url,
            owner_url=_url(environ, "SAPA_DATABASE_OWNER_URL") or url,
            pool_size=_number(environ, "SAPA_DATABASE_POOL", 10, 2, 200),
            wait_seconds=_number(environ, "SAPA_DATABASE_WAIT", 2, 1, 60),
        ),
        server=ServerSettings(
            host=environ.get("SAPA_HOST") or "127.0.0.1",
            port=_number(environ, "SAPA_PORT", 8000, 1, 65535),
            processes=_number(environ, "SAPA_PROCESSES", min(os.cpu_count() or 1, 4), 1, 64),
            tls_cert=tls_cert,
            tls_key=tls_key,
            trusted_proxies=tuple(_networks(environ, "SAPA_TRUSTED_PROXIES")),
            connections=_number(environ, "SAPA_CONNECTIONS", 8000, 10, 1_000_000),
            connections_per_address=_number(environ, "SAPA_CONNECTIONS_PER_ADDRESS", 1000, 10, 1_000_000),
            drain_seconds=_number(environ, "SAPA_DRAIN_SECONDS", 3, 0, 5),
            cors_origins=tuple(_origins(environ, "SAPA_CORS_ORIGINS")),
            serves_mcp=_choice(environ, "SAPA_MCP", "1", ("0", "1")) == "1",
            public_url=_public_url(environ, "SAPA_PUBLIC_URL"),
            security_contact=_contact(environ, "SAPA_SECURITY_CONTACT"),
        ),
        metrics=MetricsSettings(
            listen=_listen_address(environ, "SAPA_METRICS_LISTEN"),
            token=_token(environ, "SAPA_METRICS_TOKEN"),
        ),
        traces=_traces(environ),
        worker=WorkerSettings(
            listen=_listen_address(environ, "SAPA_WORKER_LISTEN"),
            pool_size=_number(environ, "SAPA_WORKER_POOL", 40, 10, 200),
        ),
        webhooks=WebhookSettings(
            allow_insecure=_choice(environ, "SAPA_WEBHOOK_ALLOW_INSECURE", "0", ("0", "1")) == "1",
            allowed_networks=tuple(_networks(environ, "SAPA_WEBHOOK_ALLOWED_NETWORKS")),
        ),
        mail=_mail(environ),
        files=FileSettings(_bucket_url(environ, "SAPA_FILES_URL"), _number(environ, "SAPA_FILES_MAX_MB", 25, 1, 100)),
        backups=_backups(environ),
        sandbox=SandboxSettings(smtp_listen=_listen_address(environ, "SAPA_SANDBOX_SMTP_LISTEN")),
        upstreams=_upstreams(environ),
        history_months=_number(environ, "SAPA_HISTORY_MONTHS", 12, 1, 120),
        retention=RetentionSettings(
            messages=_number(environ, "SAPA_MESSAGES_MONTHS", 0, 1, 120),
            timeline=_number(environ, "SAPA_TIMELINE_MONTHS", 0, 1, 120),
            shipment_events=_number(environ, "SAPA_SHIPMENT_EVENTS_MONTHS", 0, 1, 120),
            audit=_number(environ, "SAPA_AUDIT_MONTHS", 0, 1, 120),
            notices=_number(environ, "SAPA_NOTICES_MONTHS", 0, 1, 120),
        ),
        secret_key=environ.get("SAPA_SECRET_KEY") or None,
        log_level=_choice(environ, "SAPA_LOG_LEVEL", "info", ("debug", "info", "warning", "error")),
    )


def _url(environ: Mapping[str, str], name: str) -> str | None:
    """It may name several hosts, for a cluster whose primary changes."""
    text = environ.get(name) or None
    if text is not None:
        check_database_url(name, text)
    return text


def check_database_url(name: str, text: str) -> None:
    """`name` is that of the variable or the option."""
    if not _is_database_url(text):
        raise BadSetting(f"{name} must be an address such as postgresql://user:password@host:5432/sapa.")


def _public_url(environ: Mapping[str, str], name: str) -> str | None:
    text = environ.get(name)
    if not text:
        return None
    if not _is_public_url(text):
        raise BadSetting(f"{name} must be an address such as https://sapa.example.com, not {text!r}.")
    return text.rstrip("/")


def _origins(environ: Mapping[str, str], name: str) -> list[str]:
    """As browsers send them: in lower case, without a slash at the end."""
    origins = [item.lower().rstrip("/") for item in _items(environ, name)]
    for origin in origins:
        if not _is_origin(origin):
            raise BadSetting(f"{name} must list origins such as https://shop.example, without a path, not {origin!r}.")
    return origins


def _contact(environ: Mapping[str, str], name: str) -> str | None:
    """As a URI."""
    text = environ.get(name)
    if not text:
        return None
    if _is_mail_address(text):
        return f"mailto:{text}"
    if _is_mail_address(text.removeprefix("mailto:")) or _is_https_url(text):
        return text
    raise BadSetting(f"{name} must be an e-mail address or an https URL, not {text!r}.")


def _listen_address(environ: Mapping[str, str], name: str) -> tuple[str, int] | None:
    text = environ.get(name)
    if not text:
        return None
    parts = _match_listen_address(text)
    if parts is None or not 1 <= int(parts["port"]) <= 65535:
        raise BadSetting(f"{name} must be an address and a port, such as 127.0.0.1:9100 or [::1]:9100, not {text!r}.")
    return parts["bracketed"] or parts["host"], int(parts["port"])


def _token(environ: Mapping[str, str], name: str) -> str | None:
    """Long enough that nobody guesses it; the text of an error does not show it."""
    token = environ.get(name) or None
    if token is not None and not _is_token(token):
        raise BadSetting(f"{name} must have 16 to 512 printable ASCII characters without spaces.")
    return token


def _traces(environ: Mapping[str, str]) -> TraceSettings:
    url = (environ.get("SAPA_TRACES_URL") or "").rstrip("/") or None
    if url is not None and not url.startswith(("http://", "https://")):
        raise BadSetting("SAPA_TRACES_URL must be an address such as http://127.0.0.1:4318.")
    if url is not None and find_spec("opentelemetry") is None:
        raise BadSetting("SAPA_TRACES_URL needs OpenTelemetry: install sapa[traces].")
    return TraceSettings(url, _number(environ, "SAPA_TRACES_PERCENT", 1, 1, 100))


def _mail(environ: Mapping[str, str]) -> MailSettings:
    url, sender = environ.get("SAPA_SMTP_URL") or None, environ.get("SAPA_MAIL_FROM") or ""
    parts = _match_smtp_url(url or "")
    if url is not None and (parts is None or int(parts["port"] or 0) > 65535):
        raise BadSetting("SAPA_SMTP_URL must be an address such as smtp://user:password@mail.example.com:587.")
    if (url is None) != (not sender):
        raise BadSetting("SAPA_SMTP_URL and SAPA_MAIL_FROM belong together: set both to send mail, or neither.")
    if sender and not _is_sender(sender):
        raise BadSetting("SAPA_MAIL_FROM must be an address such as Sapa <no-reply@example.com>.")
    return MailSettings(url, sender)


def _bucket_url(environ: Mapping[str, str], name: str) -> str | None:
    """Errors do not repeat the value, which holds a secret."""
    text = environ.get(name)
    if not text:
        return None
    check_bucket_url(name, text)
    return text


def check_bucket_url(name: str, text: str) -> None:
    """`name` is that of the variable or the argument."""
    match = _match_bucket_url(text)
    if match is None or not 1 <= int(match["port"] or "443") <= 65535:
        raise BadSetting(f"{name} must be an address such as https://KEY:SECRET@s3.example.com/bucket?region=eu-1.")


def _backups(environ: Mapping[str, str]) -> BackupSettings:
    url, passphrase = environ.get("SAPA_BACKUP_URL") or None, environ.get("SAPA_BACKUP_PASSPHRASE") or None
    if url is not None and url.startswith(("http://", "https://")):
        url = _bucket_url(environ, "SAPA_BACKUP_URL")
    elif url is not None and not url.startswith("/"):
        raise BadSetting("SAPA_BACKUP_URL must be the absolute path of a folder, or the https URL of a bucket.")
    if url is not None and passphrase is None:
        raise BadSetting("SAPA_BACKUP_PASSPHRASE is required with SAPA_BACKUP_URL: it seals the secret key.")
    return BackupSettings(
        url,
        passphrase,
        _number(environ, "SAPA_BACKUP_HOURS", 24, 1, 720),
        _number(environ, "SAPA_BACKUP_KEEP", 7, 1, 1000),
    )


def _upstreams(environ: Mapping[str, str]) -> dict[str, str]:
    """By the provider's name in lower case."""
    upstreams = {
        name.removeprefix(_UPSTREAM).lower(): text for name, text in environ.items() if name.startswith(_UPSTREAM)
    }
    for name, text in upstreams.items():
        if not text.startswith(("https://", "http://")):
            raise BadSetting(f"{_UPSTREAM}{name.upper()} must be an address such as https://api.example.com.")
    return {name: text.rstrip("/") for name, text in upstreams.items()}


def _number(environ: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = environ.get(name)
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise BadSetting(f"{name} must be a whole number from {least} to {most}, not {text!r}.")
    return int(text)


def _choice(environ: Mapping[str, str], name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = (environ.get(name) or default).lower()
    if value not in allowed:
        raise BadSetting(f"{name} must be one of {', '.join(allowed)}, not {value!r}.")
    return value


def _items(environ: Mapping[str, str], name: str) -> list[str]:
    return [item for part in environ.get(name, "").split(",") if (item := part.strip())]


def _networks(environ: Mapping[str, str], name: str) -> list[Network]:
    try:
        return [ip_network(item, strict=False) for item in _items(environ, name)]
    except ValueError as error:
        raise BadSetting(f"{name} must list addresses or CIDR ranges, such as 10.0.0.0/8: {error}.") from None


def _path(environ: Mapping[str, str], name: str) -> Path | None:
    text = environ.get(name)
    if not text:
        return None
    if not Path(text).is_file():
        raise BadSetting(f"{name} is a path to a file that does not exist: {text}.")
    return Path(text).absolute()
