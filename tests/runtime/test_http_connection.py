"""Requests that are not quite HTTP/1.1, over real sockets."""

import re
import socket
from urllib.parse import urlsplit

import pytest

from sapa.db.pool import Database
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.http.wire import send_bytes

HOST = b"Host: sapa.example.com\r\n"
GET = b"GET /healthz HTTP/1.1\r\n"
POST = b"POST /customer/v1/customers HTTP/1.1\r\n" + HOST

REFUSED = {
    "no Host": GET + b"\r\n",
    "no Host in HTTP/1.0": b"GET /healthz HTTP/1.0\r\n\r\n",
    "two Hosts": GET + HOST + HOST + b"\r\n",
    "bare LF": GET.replace(b"\r", b"") + HOST.replace(b"\r", b"") + b"\n",
    "one bare LF": GET + HOST + b"A: b\nC: d\r\n\r\n",
    "bare LF before the end": GET + HOST + b"\n",
    "folded header": GET + HOST + b"A: b\r\n c\r\n\r\n",
    "space before the colon": GET + HOST + b"A : b\r\n\r\n",
    "two lengths": POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
    "length and chunks": POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "signed length": POST + b"Content-Length: +2\r\n\r\n{}",
    "broken chunk": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "a preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "empty lines": b"\r\n\r\n" + GET + HOST + b"\r\n",
    "another version": b"GET /healthz HTTP/2.0\r\n" + HOST + b"\r\n",
    "no version": b"GET /healthz\r\n" + HOST + b"\r\n",
    "another encoding of chunks": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a tunnel": b"CONNECT example.com:443 HTTP/1.1\r\n" + HOST + b"\r\n",
}


@pytest.fixture
async def key(database: Database, company: Environments) -> str:
    return (await make_key(database, company.live)).raw


@pytest.mark.parametrize("request_bytes", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_strictly_http_is_refused(installation: Installation, request_bytes: bytes) -> None:
    reply = send_bytes(installation, request_bytes)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")
    assert reply.headers["connection"] == "close"


@pytest.mark.parametrize(("size", "status"), [(32_000, 200), (33_000, 431), (3_000_000, 431)])
def test_a_head_over_32_kib_is_refused(installation: Installation, size: int, status: int) -> None:
    head = GET + HOST + b"A: " + b"x" * (size - len(GET + HOST) - 7) + b"\r\n\r\n"
    try:
        reply = send_bytes(installation, head)
    except ConnectionError:  # the server closed while we were still sending
        assert status == 431
    else:
        assert reply.status == status


def test_many_small_headers_over_32_kib_are_refused(installation: Installation) -> None:
    headers = b"".join(b"a%d: b\r\n" % number for number in range(5_000))
    assert send_bytes(installation, GET + HOST + headers + b"\r\n").code == "HEADERS_TOO_LARGE"


@pytest.mark.parametrize("before", [b"", b"\r\n"])
@pytest.mark.parametrize("after", [b"", b" ", b"\t "])
async def test_white_space_around_a_request_means_nothing(
    installation: Installation, key: str, before: bytes, after: bytes
) -> None:
    head = b"GET /customer/v1/customers HTTP/1.1\r\n" + HOST + b"X-Api-Key: " + key.encode() + after + b"\r\n\r\n"
    assert send_bytes(installation, before + head).status == 200


async def test_a_trailer_is_no_header(installation: Installation, key: str) -> None:
    head = b"POST /customer/v1/customers HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    trailer = b"X-Api-Key: " + key.encode() + b"\r\n\r\n"
    assert send_bytes(installation, head + b"2\r\n{}\r\n0\r\n" + trailer).status == 401


def test_the_offer_of_another_protocol_is_ignored_and_the_body_is_read(installation: Installation) -> None:
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"
    body = b'{"email":'
    reply = send_bytes(
        installation, b"POST /nowhere HTTP/1.1\r\n" + HOST + offer + b"Content-Length: %d\r\n\r\n" % len(body) + body
    )
    assert reply.status == 404


def exchange(installation: Installation, parts: list[bytes], statuses: int) -> list[bytes]:
    """The answers on one connection, as the beginnings of their status lines."""
    place = urlsplit(installation.address)
    with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
        for part in parts:
            connection.sendall(part)
        seen = b""
        while seen.count(b"HTTP/1.1 ") < statuses and (data := connection.recv(65536)):
            seen += data
    return re.findall(rb"HTTP/1\.1 \d{3}", seen)


def test_requests_may_follow_each_other_without_waiting(installation: Installation) -> None:
    body = b"POST /nowhere HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello"
    parts = [GET + HOST + b"\r\n" + body + GET[:5], GET[5:] + HOST + b"\r\n"]
    assert exchange(installation, parts, 3) == [b"HTTP/1.1 200", b"HTTP/1.1 404", b"HTTP/1.1 200"]


def test_a_request_may_follow_a_chunked_body_whose_response_came_early(installation: Installation) -> None:
    """The body is still under way when the caller is told that nothing is there. It holds what could be its end."""
    head = b"POST /nowhere HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    body, get = b"c\r\n\r\n0\r\n\r\nPOST \r\n1\r\nx\r\n0\r\n\r\n", GET + HOST + b"\r\n"
    assert exchange(installation, [head + body + get + head + b"0\r\n\r\n" + get], 4) == [
        b"HTTP/1.1 404", b"HTTP/1.1 200", b"HTTP/1.1 404", b"HTTP/1.1 200",
    ]  # fmt: skip


def test_a_request_behind_trailers_is_refused(installation: Installation) -> None:
    head = b"POST /nowhere HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    seen = exchange(installation, [head + b"0\r\nX-Sum: 1\r\n\r\n" + GET + HOST + b"\r\n"], 2)
    assert seen == [b"HTTP/1.1 404", b"HTTP/1.1 400"]


def test_each_of_several_requests_in_one_packet_is_checked(installation: Installation) -> None:
    chunked = b"POST /nowhere HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    for first in (GET + HOST + b"\r\n", chunked):
        seen = exchange(installation, [first + GET + b"\r\n" + GET + HOST + b"\r\n"], 3)
        assert seen[1:] == [b"HTTP/1.1 400"]
