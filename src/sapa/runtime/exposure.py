"""What an installation that can be reached over a network leaves open."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from msgspec import Struct

from sapa.runtime.metrics_address import ListenAddress, list_candidates
from sapa.settings import Settings


class Exposure(Struct, frozen=True):
    """Something that strangers on the network can use, and how to close it."""

    what: str
    found: str
    fix: str

    @property
    def sentence(self) -> str:
        return f"{self.what}: {self.found}. {self.fix}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def list_exposures(settings: Settings) -> list[Exposure]:
    server = settings.server
    found: list[Exposure] = []
    if not is_loopback(server.host) and not server.tls_cert and not server.trusted_proxies:
        fix = "Set SAPA_TLS_CERT and SAPA_TLS_KEY, or put a proxy with TLS in front and name it in"
        found.append(Exposure("network", f"listens on {server.host} without TLS", f"{fix} SAPA_TRUSTED_PROXIES."))
    listen = next(list_candidates(settings))
    if not is_loopback(listen.host) and settings.metrics.token is None:
        fix = "Set SAPA_METRICS_TOKEN, or SAPA_METRICS_LISTEN to a loopback address."
        found.append(Exposure("metrics", f"/metrics is open to everybody who reaches {listen}", fix))
    worker = settings.worker.listen
    if worker is not None and not is_loopback(worker[0]) and settings.metrics.token is None:
        fix = "Set SAPA_METRICS_TOKEN, or SAPA_WORKER_LISTEN to a loopback address."
        found.append(Exposure("worker", f"/metrics is open to everybody who reaches {ListenAddress(*worker)}", fix))
    mail = settings.sandbox.smtp_listen
    if mail is not None and not is_loopback(mail[0]) and not server.tls_cert:
        fix = "Set SAPA_TLS_CERT and SAPA_TLS_KEY, or SAPA_SANDBOX_SMTP_LISTEN to a loopback address."
        found.append(Exposure("sandbox mail", f"passwords for {mail[0]}:{mail[1]} are sent without encryption", fix))
    if not is_loopback(server.host) and server.trusted_proxies and server.public_url is None:
        fix = "Set SAPA_PUBLIC_URL to the https address that people use."
        found.append(Exposure("public URL", f"links in mail and pages lead to {server.address}", fix))
    public = urlsplit(server.public_url or "")
    if public.scheme == "http" and not is_loopback(public.hostname or ""):
        fix = "Serve HTTPS and set SAPA_PUBLIC_URL to the https address."
        found.append(Exposure("public URL", f"links in mail and pages lead to {server.public_url}", fix))
    return found
