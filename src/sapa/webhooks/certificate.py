"""Why a certificate was refused: the reason is in the certificate, not in the error."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime

from aiohttp import AddrInfoType
from cryptography import x509
from cryptography.x509.oid import NameOID

TIMEOUT_SECONDS = 3
_MAX_NAMES = 3
_MAX_CHARACTERS = 100

NOT_YET_VALID, EXPIRED, SELF_SIGNED, SELF_SIGNED_ROOT, NO_ISSUER, NO_INTERMEDIATE, WRONG_HOST, WRONG_ADDRESS = (
    9, 10, 18, 19, 20, 21, 62, 64,
)  # fmt: skip
"""OpenSSL's verification error codes."""

_UNKNOWN_ISSUER = "the certificate's issuer is unknown; configure the server to send its intermediate certificates"
_BY_CODE = {
    SELF_SIGNED: "the certificate is self-signed; use one from a public authority",
    SELF_SIGNED_ROOT: "the certificate is from an unknown authority",
    NO_ISSUER: _UNKNOWN_ISSUER,
    NO_INTERMEDIATE: _UNKNOWN_ISSUER,
}


async def explain_refusal(
    error: ssl.SSLCertVerificationError,
    open_socket: Callable[[AddrInfoType], socket.socket],
    address: str | None,
    port: int,
    host: str,
) -> str:
    """A sentence on why a certificate was refused; fetches it again where that gives details."""
    code = error.verify_code
    if code in _BY_CODE:
        return _BY_CODE[code]
    certificate = await _find_certificate(open_socket, address, port, host) if address else None
    if certificate is None:
        return f"the certificate was refused: {error.verify_message}"
    return _explain(code, certificate, host) or f"the certificate was refused: {error.verify_message}"


def _explain(code: int, certificate: x509.Certificate, host: str) -> str | None:
    if code == EXPIRED:
        # OpenSSL does not say which certificate of the chain expired; the server's own is the likely one.
        ended = certificate.not_valid_after_utc
        return f"the certificate expired on {_format_day(ended)}" if ended < datetime.now(UTC) else None
    if code == NOT_YET_VALID:
        return f"the certificate is not valid before {_format_day(certificate.not_valid_before_utc)}"
    if code in {WRONG_HOST, WRONG_ADDRESS}:
        return f"the certificate is for {_list_names(certificate)}, not for {host}"
    return None


def _format_day(date: datetime) -> str:
    return f"{date.day} {date:%B %Y}"


def _list_names(certificate: x509.Certificate) -> str:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        found = [str(name.value) for name in names if isinstance(name, x509.DNSName | x509.IPAddress)]
    except (x509.ExtensionNotFound, ValueError):
        found = [str(name.value) for name in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    shown = [name[:_MAX_CHARACTERS] for name in found[:_MAX_NAMES]]
    more = [f"{len(found) - _MAX_NAMES} others"] if len(found) > _MAX_NAMES else []
    return " and ".join([", ".join(shown), *more]) if found else "no name at all"


async def _find_certificate(
    open_socket: Callable[[AddrInfoType], socket.socket], address: str, port: int, host: str
) -> x509.Certificate | None:
    """Only a handshake: nothing of a delivery goes to an unverified server."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            encoded = await _fetch_certificate(open_socket, address, port, host)
        return x509.load_der_x509_certificate(encoded) if encoded else None
    except (OSError, ValueError):
        return None


async def _fetch_certificate(
    open_socket: Callable[[AddrInfoType], socket.socket], address: str, port: int, host: str
) -> bytes | None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    loop = asyncio.get_running_loop()
    with open_socket((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port))) as raw_socket:
        raw_socket.setblocking(False)
        await loop.sock_connect(raw_socket, (address, port))
        transport, _ = await loop.create_connection(
            asyncio.Protocol, sock=raw_socket.dup(), ssl=_build_unverified_tls(), server_hostname=host
        )
        try:
            certificate: bytes | None = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
            return certificate
        finally:
            transport.abort()


def _build_unverified_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
