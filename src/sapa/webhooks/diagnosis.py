"""Why an attempt failed: an error code for programs, a sentence for people."""

import errno
import socket
import ssl
from urllib.parse import urljoin

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from msgspec import Struct

from sapa.outbound.guard import BlockedAddress
from sapa.outbound.resolver import NoRoom, SlowName

_MAX_CHARACTERS = 300

_OUR_SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL}

_BY_STATUS = {
    400: "it refuses the request; check which secret it verifies signatures with",
    401: "it requires authentication; add a custom header to the endpoint",
    403: "it refuses the request; check for a firewall, a bot filter or a missing custom header",
    404: "nothing is at this path",
    405: "this path does not accept POST",
    408: "it was too slow to read the request",
    410: "the receiver says it is gone",
    411: "it requires a content length, which was sent; check the proxy in front of it",
    413: "it rejects the body as too large; bodies are at most 64 KB",
    415: "it does not accept application/json",
    429: "it gets too many requests",
    500: "the receiver has an internal error",
    502: "its proxy got an invalid response from the application",
    503: "it is temporarily unavailable",
    504: "its proxy got no response from the application in time",
}

_BY_TLS_REASON = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS on this port; is it plain http?",
    "HTTP_REQUEST": "it does not speak TLS on this port; is it plain http?",
    "UNSUPPORTED_PROTOCOL": "it only supports TLS versions older than 1.2",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it only supports TLS versions older than 1.2",
    "TLSV1_UNRECOGNIZED_NAME": "it has no TLS site with this name",
    "TLSV1_ALERT_UNRECOGNIZED_NAME": "it has no TLS site with this name",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it requires a client certificate, which webhooks do not have",
    "UNEXPECTED_EOF_WHILE_READING": "it closed the connection during the TLS handshake",
}

_BY_ERRNO = {
    errno.ECONNREFUSED: "refused the connection: nothing listens there",
    errno.EHOSTUNREACH: "cannot be reached: there is no route to it",
    errno.ENETUNREACH: "cannot be reached: there is no route to its network",
    errno.ETIMEDOUT: "does not answer",
    errno.EACCES: "cannot be reached: this machine's firewall blocks it",
    errno.EPERM: "cannot be reached: this machine's firewall blocks it",
}


class DeliveryFailure(Struct, frozen=True):
    error: str
    message: str
    is_ours: bool = False
    """Not the receiver's fault: retried without being counted."""


def find_refusal(status: int, location: str | None, url: str) -> DeliveryFailure | None:
    """The failure that a status other than 2xx means."""
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return DeliveryFailure("http_3xx", _redirect(status, location, url))
    meaning = _BY_STATUS.get(status)
    if status < 200 or status >= 600:
        meaning = "not a final HTTP status"
    message = f"answered {status}: {meaning}" if meaning else f"answered {status}"
    return DeliveryFailure("http_5xx" if status >= 500 else "http_4xx", message)


def _redirect(status: int, location: str | None, url: str) -> str:
    if not location:
        return f"answered {status}; only 2xx counts as received"
    try:
        target = urljoin(url, location)
    except ValueError:
        target = location
    advice = ", register that address" if target.startswith(("https://", "http://")) else ""
    return f"answered {status} to {printable(target)}; redirects are not followed{advice}"


def printable(text: str) -> str:
    """Untrusted text, fit for a message and the database: no control characters, no broken Unicode."""
    whole = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    shown = "".join(character if character.isprintable() else "�" for character in whole)
    return shown if len(shown) <= _MAX_CHARACTERS else shown[:_MAX_CHARACTERS] + "…"


def describe_timeout(has_connection: bool, address: str, seconds: float) -> DeliveryFailure:
    if has_connection:
        return DeliveryFailure("timeout_response", f"no answer within {seconds:g} s")
    return DeliveryFailure("timeout_connect", f"no connection to {address} within {seconds:g} s")


def describe(error: Exception, host: str, address: str) -> DeliveryFailure:
    """Describes a network error; any other error is our own."""
    if isinstance(error, BlockedAddress):
        return DeliveryFailure("blocked_address", str(error))
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError):
        return _describe_connecting(error, host, address)
    if tls := _find_tls(error):
        return DeliveryFailure("tls", _describe_tls(tls))
    if isinstance(error, HttpProcessingError):
        detail = (error.message.splitlines() or [""])[0].rstrip(": ")
        return DeliveryFailure("reset", f"its response is not valid HTTP: {printable(detail).lower()}")
    if isinstance(error, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError):
        return DeliveryFailure("reset", "closed the connection without a response")
    return DeliveryFailure("internal", f"could not be sent by this installation: {type(error).__name__}", is_ours=True)


def _describe_connecting(
    error: aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError, host: str, address: str
) -> DeliveryFailure:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error.certificate_error
    if isinstance(cause, BlockedAddress):
        return DeliveryFailure("blocked_address", str(cause))
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return _describe_name(cause, host)
    if isinstance(cause, ssl.SSLError | ssl.CertificateError):
        return DeliveryFailure("tls", _describe_tls(cause))
    return _describe_socket(cause, address)


def _describe_name(cause: Exception, host: str) -> DeliveryFailure:
    if isinstance(cause, NoRoom):
        return DeliveryFailure("internal", str(cause), is_ours=True)
    if isinstance(cause, SlowName):
        return DeliveryFailure("dns", str(cause))
    number = cause.errno if isinstance(cause, socket.gaierror) else None
    if number == socket.EAI_NONAME:
        return DeliveryFailure("dns", f"the name {host} does not exist")
    if number == socket.EAI_NODATA:
        return DeliveryFailure("dns", f"the name {host} has no address")
    if number == socket.EAI_AGAIN:
        return DeliveryFailure("dns", f"the name servers of {host} do not answer")
    return DeliveryFailure("dns", f"the name {host} cannot be looked up: {printable(str(cause))}")


def _describe_socket(cause: Exception, address: str) -> DeliveryFailure:
    number = cause.errno if isinstance(cause, OSError) else None
    if number in _OUR_SHORTAGES:
        return DeliveryFailure(
            "internal", f"this machine cannot open more connections: {printable(str(cause))}", is_ours=True
        )
    if number in _BY_ERRNO:
        return DeliveryFailure("tcp", f"{address} {_BY_ERRNO[number]}")
    if isinstance(cause, ConnectionError):  # the socket was connected, else it would have been refused
        return DeliveryFailure("tls", _BY_TLS_REASON["UNEXPECTED_EOF_WHILE_READING"])
    return DeliveryFailure("tcp", f"{address} cannot be connected to: {printable(str(cause))}")


def _describe_tls(error: Exception) -> str:
    reason = getattr(error, "reason", None) or ""
    if reason in _BY_TLS_REASON:
        return _BY_TLS_REASON[reason]
    return f"the TLS handshake failed: {printable(str(reason or error)).replace('_', ' ').lower()}"


def _find_tls(error: BaseException | None) -> ssl.SSLError | None:
    """A TLS 1.3 alert after the handshake arrives like any other broken connection."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return error
        error = error.__cause__
    return None
