"""Deliveries over TLS: certificates are checked, and a refusal says what is wrong with them."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

import psutil
import pytest
import trustme

from sapa.webhooks.sender import SendResult
from tests.webhooks.zoo import LOCAL, OK, Receiver, answering, flooding, hang, send, sending, serve


@pytest.fixture
def authority(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> trustme.CA:
    """An authority that the system trusts, as an operator would make it do so."""
    existing = trustme.CA()
    existing.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    return existing


def present(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


async def try_shop(tls: ssl.SSLContext | None, deadline: float = 5) -> tuple[SendResult, Receiver]:
    """One delivery to shop.example, where this context is served."""
    async with (
        serve(answering(OK), tls) as receiver,
        sending(LOCAL, deadline, shop_example=["127.0.0.1"]) as sender,
    ):
        return await send(sender, receiver.url("shop.example", "https")), receiver


async def test_a_valid_certificate_is_accepted(authority: trustme.CA) -> None:
    outcome, receiver = await try_shop(present(authority.issue_cert("shop.example")))
    assert outcome.delivered
    assert outcome.address == "127.0.0.1"
    assert dict(receiver.requests[0].headers)["Host"] == f"shop.example:{receiver.port}"


async def test_an_expired_certificate(authority: trustme.CA) -> None:
    certificate = authority.issue_cert(
        "shop.example", not_before=datetime(2026, 1, 3, tzinfo=UTC), not_after=datetime(2026, 5, 3, 12, tzinfo=UTC)
    )
    outcome, receiver = await try_shop(present(certificate))
    assert (outcome.error, outcome.message) == ("tls", "the certificate expired on 3 May 2026")
    assert outcome.address == "127.0.0.1"
    assert receiver.requests == []


async def test_a_certificate_of_the_future(authority: trustme.CA) -> None:
    certificate = authority.issue_cert("shop.example", not_before=datetime(2036, 1, 3, tzinfo=UTC))
    outcome, receiver = await try_shop(present(certificate))
    assert (outcome.error, outcome.message) == ("tls", "the certificate is not valid before 3 January 2036")
    assert receiver.requests == []


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["other.example"], "other.example"),
        (["a.example", "b.example"], "a.example, b.example"),
        (
            ["a.example", "b.example", "127.0.0.9", "d.example", "e.example"],
            "a.example, b.example, 127.0.0.9 and 2 others",
        ),
        (["*.shop.example"], "*.shop.example"),
    ],
)
async def test_a_certificate_for_another_host(authority: trustme.CA, names: list[str], said: str) -> None:
    outcome, receiver = await try_shop(present(authority.issue_cert(*names)))
    assert (outcome.error, outcome.message) == ("tls", f"the certificate is for {said}, not for shop.example")
    assert receiver.requests == []


async def test_a_certificate_of_an_unknown_authority(authority: trustme.CA) -> None:
    outcome, receiver = await try_shop(present(trustme.CA().issue_cert("shop.example")))
    assert outcome.error == "tls"
    assert outcome.message is not None
    assert outcome.message.startswith("the certificate's issuer is unknown")
    assert receiver.requests == []


async def test_a_server_without_tls(authority: trustme.CA) -> None:
    async def greet(receiver: Receiver, reader: object, writer: object) -> None:
        await flooding(b"220 mail.example\r\n" * 10)(reader, writer)  # type: ignore[arg-type]

    async with serve(greet) as receiver, sending(LOCAL, 5, shop_example=["127.0.0.1"]) as sender:
        outcome = await send(sender, receiver.url("shop.example", "https"))
    assert (outcome.error, outcome.message) == ("tls", "it does not speak TLS on this port; is it plain http?")


async def test_a_handshake_that_hangs(authority: trustme.CA) -> None:
    async def sleep(receiver: Receiver, reader: object, writer: object) -> None:
        await hang(reader, writer)  # type: ignore[arg-type]

    async with serve(sleep) as receiver, sending(LOCAL, 1, shop_example=["127.0.0.1"]) as sender:
        outcome = await send(sender, receiver.url("shop.example", "https"))
    assert outcome.error == "timeout_connect"
    assert outcome.message == f"no connection to 127.0.0.1 port {receiver.port} within 1 s"


async def test_a_server_that_closes_in_the_handshake(authority: trustme.CA) -> None:
    async def leave(receiver: Receiver, reader: object, writer: object) -> None: ...

    async with serve(leave) as receiver, sending(LOCAL, 5, shop_example=["127.0.0.1"]) as sender:
        outcome = await send(sender, receiver.url("shop.example", "https"))
    assert (outcome.error, outcome.message) == ("tls", "it closed the connection during the TLS handshake")


@contextmanager
def serve_handshakes(tls: ssl.SSLContext) -> Iterator[str]:
    """A server that tells the other side why it ends a handshake, as most do and asyncio does not."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=_shake_hands, args=(server, tls))
        thread.start()
        yield f"https://shop.example:{server.getsockname()[1]}/"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def _shake_hands(server: socket.socket, tls: ssl.SSLContext) -> None:
    with suppress(OSError):
        while True:
            plain, _ = server.accept()
            with tls.wrap_socket(plain, server_side=True, do_handshake_on_connect=False) as opened:
                try:
                    opened.do_handshake()
                    opened.recv(1)
                except ssl.SSLError:
                    _say_goodbye(opened)


def _say_goodbye(opened: ssl.SSLSocket) -> None:
    """What was said last is lost when a connection is closed with something unread."""
    opened.shutdown(socket.SHUT_WR)
    while opened.recv(4096):
        pass


async def test_a_server_that_wants_a_client_certificate(authority: trustme.CA) -> None:
    tls = present(authority.issue_cert("shop.example"))
    tls.verify_mode = ssl.CERT_REQUIRED
    with serve_handshakes(tls) as url:
        async with sending(LOCAL, 5, shop_example=["127.0.0.1"]) as sender:
            outcome = await send(sender, url)
    assert (outcome.error, outcome.message) == ("tls", "it requires a client certificate, which webhooks do not have")


async def test_a_server_that_only_speaks_an_old_tls(authority: trustme.CA) -> None:
    tls = present(authority.issue_cert("shop.example"))
    tls.set_ciphers("ALL:@SECLEVEL=0")
    tls.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        tls.maximum_version = ssl.TLSVersion.TLSv1_1
    with serve_handshakes(tls) as url:
        async with sending(LOCAL, 5, shop_example=["127.0.0.1"]) as sender:
            outcome = await send(sender, url)
    assert (outcome.error, outcome.message) == ("tls", "it only supports TLS versions older than 1.2")


async def test_a_receiver_that_hangs_over_tls_is_left_at_once(authority: trustme.CA) -> None:
    """A polite farewell would wait for one that never comes."""
    tls, done = present(authority.issue_cert("shop.example")), Event()

    def answer(server: socket.socket) -> None:
        with server.accept()[0] as plain, tls.wrap_socket(plain, server_side=True) as opened:
            opened.recv(65_536)
            opened.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
            done.wait(60)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=answer, args=(server,))
        thread.start()
        port = server.getsockname()[1]
        async with sending(LOCAL, 1, shop_example=["127.0.0.1"]) as sender:
            assert (await send(sender, f"https://shop.example:{port}/")).delivered
            for _ in range(200):
                if not is_open(port):
                    break
                await asyncio.sleep(0.05)
            assert not is_open(port)
        done.set()
        thread.join()


def is_open(port: int) -> bool:
    found = psutil.Process().net_connections("tcp")
    return any(one.raddr and one.raddr.port == port and one.status == psutil.CONN_ESTABLISHED for one in found)
