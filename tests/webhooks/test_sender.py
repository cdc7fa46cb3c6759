"""A delivery against receivers of every temper: the outcome, its sentence, its time and its memory."""

import asyncio
import gzip
import resource
import socket
import time
import tracemalloc
from contextlib import ExitStack

import pytest

from sapa.webhooks.sender import (
    CAPTURED_BYTES,
    MAX_BODY_BYTES,
    Target,
    WebhookMessage,
    WebhookSender,
    shorten,
)
from sapa.webhooks.signing import new_secret
from tests.webhooks import zoo
from tests.webhooks.zoo import (
    INSECURE,
    OK,
    Behaviour,
    Reader,
    Writer,
    answering,
    answering_and,
    close,
    dripping,
    flooding,
    hang,
    reset,
    send,
    sending,
    serve,
)

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
GZIP_BOMB = gzip.compress(b"\0" * 20_000_000, compresslevel=1)
CLEAR_OF_DEADLINE = 60
"""How much later than its deadline an attempt may end on a machine that is busy with other things."""


async def test_a_delivery_carries_exactly_these_headers() -> None:
    async with serve(answering(OK)) as receiver, sending() as sender:
        outcome = await send(
            sender, receiver.url() + "?a=%2Fb%41&c", X_Shop="melati", user_agent="mine", webhook_id="x"
        )
    assert outcome.delivered
    request = receiver.requests[0]
    assert request.line == b"POST /hook?a=%2Fb%41&c HTTP/1.1"
    assert request.body == zoo.BODY
    value = dict(request.headers)
    assert len(value) == len(request.headers)
    signed = {name: value.pop(name) for name in ("X-Service-Webhook-Signature", "webhook-signature")}
    instant = value.pop("webhook-timestamp")
    assert value == {
        "Host": f"127.0.0.1:{receiver.port}",
        "Content-Type": "application/json",
        "User-Agent": "Service-Webhooks/1.0",
        "X-Service-Webhook-Id": "evt_1",
        "X-Service-Webhook-Event": "customer.created",
        "X-Service-Webhook-Timestamp": instant,
        "webhook-id": "evt_1",
        "X-Shop": "melati",
        "Content-Length": str(len(zoo.BODY)),
    }
    assert abs(int(instant) - time.time()) < 60
    assert signed["X-Service-Webhook-Signature"].startswith(f"t={instant},v1=")
    assert signed["webhook-signature"].startswith("v1,")


async def test_the_credentials_of_an_address_are_a_header() -> None:
    async with serve(answering(OK)) as receiver, sending() as sender:
        outcome = await send(sender, receiver.url().replace("//", "//ayu:ra%3Ahasia@"))
    assert outcome.delivered
    assert dict(receiver.requests[0].headers)["Authorization"] == "Basic YXl1OnJhOmhhc2lh"
    assert receiver.requests[0].line == b"POST /hook HTTP/1.1"


async def test_a_header_that_would_end_its_line_is_not_sent() -> None:
    async with serve(answering(OK)) as receiver, sending() as sender:
        outcome = await send(sender, receiver.url(), X_Shop="melati\r\nX-Other: 1")
    assert (outcome.error, outcome.is_ours) == ("internal", True)
    assert receiver.requests == []


async def test_an_outcome_has_status_time_address_and_response() -> None:
    async with serve(answering(OK)) as receiver, sending() as sender:
        outcome = await send(sender, receiver.url())
    assert (outcome.status, outcome.error, outcome.message, outcome.response) == (200, None, None, b"ok")
    assert outcome.address == "127.0.0.1"
    assert outcome.milliseconds >= 0
    assert outcome.started_at.utcoffset() is not None
    assert not outcome.is_ours


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_every_2xx_acknowledges(status: int) -> None:
    async with (
        serve(answering(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status)) as receiver,
        sending() as sender,
    ):
        outcome = await send(sender, receiver.url())
    assert outcome.delivered
    assert outcome.status == status


@pytest.mark.parametrize(
    ("status", "location", "error", "message"),
    [
        (301, b"https://b.example/x", "http_3xx", "answered 301 to https://b.example/x; redirects are not followed"),
        (302, b"/moved", "http_3xx", "answered 302 to http://127.0.0.1:{port}/moved; redirects"),
        (307, b"http://169.254.169.254/", "http_3xx", "answered 307 to http://169.254.169.254/; redirects"),
        (308, b"http://169.254.169.254/", "http_3xx", "answered 308 to http://169.254.169.254/; redirects"),
        (308, b"http://[", "http_3xx", "answered 308 to http://[; redirects"),
        (301, b"\xff\x01" + b"x" * 5000, "http_3xx", "answered 301 to http://127.0.0.1:{port}/�"),
        (302, b"file:///etc/passwd", "http_3xx", "answered 302 to file:///etc/passwd; redirects are not followed$"),
        (304, None, "http_3xx", "answered 304; only 2xx counts as received"),
        (400, None, "http_4xx", "answered 400: it refuses the request; check which secret it verifies signatures with"),
        (401, None, "http_4xx", "answered 401: it requires authentication"),
        (404, None, "http_4xx", "answered 404: nothing is at this path"),
        (410, None, "http_4xx", "answered 410: the receiver says it is gone"),
        (418, None, "http_4xx", "answered 418"),
        (429, None, "http_4xx", "answered 429: it gets too many requests"),
        (500, None, "http_5xx", "answered 500: the receiver has an internal error"),
        (503, None, "http_5xx", "answered 503: it is temporarily unavailable"),
        (599, None, "http_5xx", "answered 599"),
        (600, None, "http_5xx", "answered 600: not a final HTTP status"),
    ],
)
async def test_any_other_response_is_a_failure_with_its_meaning(
    status: int, location: bytes | None, error: str, message: str
) -> None:
    headers = b"Location: " + location + b"\r\n" if location else b""
    answer = b"HTTP/1.1 %d X\r\n%sContent-Length: 4\r\n\r\nwhy?" % (status, headers)
    async with serve(answering(answer if status != 304 else answer[:-4])) as receiver, sending() as sender:
        outcome = await send(sender, receiver.url())
    assert not outcome.delivered
    assert (outcome.status, outcome.error) == (status, error)
    assert outcome.message is not None
    assert f"{outcome.message}$".startswith(message.format(port=receiver.port))
    assert len(outcome.message) < 500
    outcome.message.encode()
    assert "\0" not in outcome.message
    assert receiver.connections == len(receiver.requests) == 1
    assert outcome.response == (b"" if status == 304 else b"why?")


LATE = "no answer within 1 s"
BROKEN = "closed the connection without a response"

ZOO: dict[str, tuple[Behaviour, str | None, str | None]] = {
    "hangs after the request": (answering_and(hang), "timeout_response", LATE),
    "hangs in the headers": (answering_and(hang, b"HTTP/1.1 200 OK\r\nX-A: b\r\n"), "timeout_response", LATE),
    "drips its headers": (answering_and(dripping(OK, 0.3)), "timeout_response", LATE),
    "goes on continuing": (
        answering_and(flooding(b"HTTP/1.1 100 Continue\r\n\r\n" * 2000)),
        "reset",
        "its response is not valid HTTP: too many interim answers",
    ),
    "answers early": (answering(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 3 + OK), None, None),
    "answers what was not asked": (answering_and(flooding(OK * 2000), OK), None, None),
    "hangs after its headers": (answering_and(hang, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), None, None),
    "drips its body": (
        answering_and(dripping(b"x" * 90, 0.1), b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n"),
        None,
        None,
    ),
    "never ends its body": (
        answering_and(flooding(b"x" * 65_536), b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"),
        None,
        None,
    ),
    "never ends its chunks": (answering_and(flooding(b"2000\r\n" + b"x" * 0x2000 + b"\r\n"), CHUNKED), None, None),
    "never ends one chunk": (answering_and(flooding(b"x" * 65_536), CHUNKED + b"ffffffffff\r\n"), None, None),
    "breaks its chunks": (answering_and(dripping(b"zz\r\n", 0.05), CHUNKED + b"3\r\nabc\r\n"), None, None),
    "sends a body with its 204": (answering(b"HTTP/1.1 204 No Content\r\n\r\nhello"), None, None),
    "sends a body with its 204 after hints": (
        answering(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 X\nContent-Length: 5\n\nhello"),
        None,
        None,
    ),
    "sends bad chunks with its head": (answering(CHUNKED + b"ZZ\r\nhello"), None, None),
    "cuts its head in its last blank line": (
        answering_and(dripping(b"\n\0hello", 0.05), b"HTTP/1.1 204 X\r\n\r"),
        None,
        None,
    ),
    "sends blank lines only": (answering_and(flooding(b"\r\n" * 30_000)), "timeout_response", LATE),
    "ends before its length": (answering_and(close, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), None, None),
    "resets in its body": (answering_and(reset, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), None, None),
    "sends a bomb": (
        answering(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(GZIP_BOMB) + GZIP_BOMB
        ),
        None,
        None,
    ),
    "speaks no text": (
        answering(b"HTTP/1.1 200 \xff\r\nX-A: \xfe\r\nContent-Length: 3\r\n\r\n\0\xff\0"),
        None,
        None,
    ),
    "sends one long header": (
        answering(b"HTTP/1.1 200 OK\r\nX-A: " + b"x" * 100_000 + b"\r\nContent-Length: 0\r\n\r\n"),
        "reset",
        "its response is not valid HTTP",
    ),
    "sends many headers": (
        answering(b"HTTP/1.1 200 OK\r\n" + b"X-A: bcd\r\n" * 10_000 + b"\r\n"),
        "reset",
        "its response is not valid HTTP",
    ),
    "never ends its headers": (
        answering_and(flooding(b"X-A: " + b"x" * 1000 + b"\r\n"), b"HTTP/1.1 200 OK\r\n"),
        "reset",
        "its response is not valid HTTP",
    ),
    "never ends its first line": (
        answering_and(flooding(b"x" * 65_536), b"HTTP/1.1 200 "),
        "reset",
        "its response is not valid HTTP",
    ),
    "is no web server": (answering(b"SSH-2.0-OpenSSH_9.2\r\n"), "reset", "its response is not valid HTTP"),
    "closes": (answering_and(close), "reset", BROKEN),
    "closes in its headers": (answering_and(close, b"HTTP/1.1 200 OK\r\nX-"), "reset", BROKEN),
    "resets": (answering_and(reset), "reset", BROKEN),
    "switches protocols": (
        answering(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
        "http_4xx",
        "answered 101: not a final HTTP status",
    ),
}


@pytest.mark.parametrize("name", ZOO)
async def test_whatever_a_receiver_does_is_an_outcome_in_time(name: str) -> None:
    behave, error, message = ZOO[name]
    began = time.monotonic()
    async with serve(behave) as receiver, sending(deadline=1) as sender:
        outcome = await send(sender, receiver.url())
        seconds = time.monotonic() - began
        assert outcome.error == error
        assert outcome.delivered == (error is None)
        assert (outcome.message or "").startswith(message or "")
        assert (outcome.message is None) == (message is None)
        assert outcome.address == "127.0.0.1"
        assert not outcome.is_ours
        assert len(outcome.response) <= CAPTURED_BYTES
        assert seconds < 1 + CLEAR_OF_DEADLINE
        assert receiver.connections == 1


@pytest.mark.parametrize(
    ("name", "captured"),
    [
        ("speaks no text", b"\0\xff\0"),
        ("sends a bomb", GZIP_BOMB[:CAPTURED_BYTES]),
        ("never ends its body", b"x" * CAPTURED_BYTES),
        ("never ends one chunk", b"x" * CAPTURED_BYTES),
        ("ends before its length", b"abc"),
        ("breaks its chunks", b"abc"),
    ],
)
async def test_the_start_of_a_response_is_stored_unchanged(name: str, captured: bytes) -> None:
    async with serve(ZOO[name][0]) as receiver, sending(deadline=1) as sender:
        assert (await send(sender, receiver.url())).response == captured


@pytest.mark.parametrize("cut", range(20, 60, 3))
async def test_a_response_is_valid_wherever_the_network_splits_it_and_whatever_follows(cut: int) -> None:
    answer = b"HTTP/1.1 204 No Content\r\nX-Shop: melati\r\n\r\n\0stray\r\n\r\n"

    async def say_the_rest(reader: Reader, writer: Writer) -> None:
        await asyncio.sleep(0.02)
        writer.write(answer[cut:])
        await writer.drain()
        await hang(reader, writer)

    async with serve(answering_and(say_the_rest, answer[:cut])) as receiver, sending(deadline=5) as sender:
        outcome = await send(sender, receiver.url())
        assert (outcome.status, outcome.error) == (204, None)
        assert (await send(sender, receiver.url())).delivered, "what was stray does not answer the next request"


async def test_a_receiver_that_does_not_accept_is_given_up() -> None:
    with ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        port = full.getsockname()[1]
        async with sending(deadline=1) as sender:
            outcome = await send(sender, f"http://127.0.0.1:{port}/")
    assert outcome.error == "timeout_connect"
    assert outcome.message == f"no connection to 127.0.0.1 port {port} within 1 s"


async def test_a_port_where_nothing_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with sending() as sender:
            outcome = await send(sender, f"http://127.0.0.1:{port}/")
    assert outcome.error == "tcp"
    assert outcome.message == f"127.0.0.1 port {port} refused the connection: nothing listens there"
    assert outcome.address == "127.0.0.1"


async def test_a_name_that_does_not_exist() -> None:
    async with sending() as sender:
        outcome = await send(sender, "https://shop.example/")
    assert (outcome.error, outcome.message) == ("dns", "the name shop.example does not exist")
    assert outcome.address is None


async def test_a_shortage_of_our_own_is_not_held_against_the_receiver() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with serve(answering(OK)) as receiver, sending() as sender:
        with socket.socket() as probe:
            resource.setrlimit(resource.RLIMIT_NOFILE, (probe.fileno(), limits[1]))
        try:
            outcome = await send(sender, receiver.url())
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert outcome.error == "internal"
    assert outcome.is_ours


async def test_plain_http_is_not_sent_once_it_is_no_longer_allowed() -> None:
    async with serve(answering(OK)) as receiver, sending(zoo.LOCAL) as sender:
        outcome = await send(sender, receiver.url())
    assert outcome.error == "blocked_address"
    assert receiver.connections == 0


@pytest.mark.parametrize(
    "name",
    [
        "never ends its body",
        "never ends its chunks",
        "sends a bomb",
        "goes on continuing",
        "answers what was not asked",
    ],
)
async def test_memory_stays_flat_whatever_is_sent(name: str) -> None:
    async with serve(ZOO[name][0]) as receiver, sending(deadline=1) as sender:
        await send(sender, receiver.url())
        tracemalloc.start()
        try:
            await asyncio.gather(*(send(sender, receiver.url()) for _ in range(10)))
            await asyncio.sleep(0.5)  # what was not asked for comes afterwards
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 20_000_000


async def test_a_cancelled_attempt_leaves_nothing_behind() -> None:
    async with serve(ZOO["drips its body"][0]) as receiver, sending() as sender:
        sent = asyncio.create_task(send(sender, receiver.url()))
        await asyncio.wait_for(receiver.has_request.wait(), 120)
        await asyncio.sleep(0.2)
        sent.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sent


async def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with serve(answering(OK)) as receiver, sending() as sender:
        assert (await send(sender, receiver.url())).delivered


async def test_cookies_are_not_stored() -> None:
    answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
    async with serve(answering(answer)) as receiver, sending(localtest_me=["127.0.0.1"]) as sender:
        for _ in range(2):
            await send(sender, receiver.url("localtest.me"))
    assert all(name.lower() != "cookie" for request in receiver.requests for name, _ in request.headers)


async def test_a_body_of_64_kb_is_sent_whole_and_a_larger_one_as_where_to_get_it() -> None:
    whole = b'"' + b"x" * (MAX_BODY_BYTES - 2) + b'"'
    assert shorten(whole, "cust_1", None) == whole
    assert shorten(whole + b" ", "cust_1", "https://sapa.example/customer/v1/customers/cust_1") == (
        b'{"id":"cust_1","truncated":true,"url":"https://sapa.example/customer/v1/customers/cust_1"}'
    )
    assert shorten(whole + b" ", "cust_1", None) == b'{"id":"cust_1","truncated":true,"url":null}'
    async with serve(answering(OK)) as receiver, sending() as sender:
        assert (await send(sender, receiver.url(), whole)).delivered
    assert receiver.requests[0].body == whole


async def test_the_deadline_is_thirty_seconds() -> None:
    sender = WebhookSender(INSECURE)
    try:
        assert sender.deadline == 30
    finally:
        await sender.close()


async def test_during_rotation_both_secrets_sign() -> None:
    secrets = [new_secret(), new_secret()]
    async with serve(answering(OK)) as receiver, sending() as sender:
        await sender.send(Target(receiver.url(), {}, secrets), WebhookMessage("evt_1", "customer.created", zoo.BODY))
    value = dict(receiver.requests[0].headers)
    assert value["X-Service-Webhook-Signature"].count("v1=") == 2
    assert len(value["webhook-signature"].split(" ")) == 2
