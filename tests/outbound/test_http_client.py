"""Calls to providers over real sockets: what is sent, how a response is read, and what a failure says."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from sapa.outbound.client import NotSent, ProviderResponse, Unclear
from sapa.outbound.http_client import HttpClient
from sapa.settings import read_settings

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Provider:
    """Replies to each request on a connection with the next of its replies; None closes the connection instead."""

    def __init__(self, replies: Sequence[bytes | None]) -> None:
        self.replies = list(replies)
        self.requests: list[tuple[int, str, bytes]] = []
        """Each with the number of its connection, its head and its body."""
        self.connections = 0
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    (int(line[15:]) for line in head.lower().splitlines() if line.startswith("content-length:")), 0
                )
                self.requests.append((number, head, await reader.readexactly(length)))
                reply = self.replies.pop(0)
                if reply is None:
                    break
                writer.write(reply)
                if b"\r\n\r\n" not in reply or b"connection: close" in reply:
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def open_provider(*replies: bytes | None) -> AsyncIterator[tuple[Provider, HttpClient]]:
    provider, client = Provider(replies), HttpClient(read_settings({}).webhooks)
    async with await asyncio.start_server(provider.serve, "127.0.0.1", 0) as server:
        provider.address = "http://{}:{}".format(*server.sockets[0].getsockname())
        try:
            yield provider, client
        finally:
            await client.close()


async def post(client: HttpClient, provider: Provider, path: str = "/send", **options: float) -> ProviderResponse:
    return await client.call("POST", provider.address + path, content=b'{"a":1}', **options)  # type: ignore[arg-type]


def fields_of(head: str) -> dict[str, str]:
    return {name.lower(): text for name, text in (line.split(": ", 1) for line in head.splitlines()[1:] if line)}


async def test_a_post_is_sent_whole_with_its_headers() -> None:
    async with open_provider(OK, OK) as (provider, client):
        response = await client.call(
            "POST",
            f"{provider.address}/v1/a%20b?x=1&y=é",
            headers={"Content-Type": "application/json", "authorization": "Bearer t"},
            content=b'{"a":1}',
        )
        await post(client, provider)
    assert (response.status, response.body) == (200, b"ok")
    (_, head, body), (_, other, _) = provider.requests
    assert head.splitlines()[0] == "POST /v1/a%20b?x=1&y=%C3%A9 HTTP/1.1"
    assert body == b'{"a":1}'
    assert fields_of(head) == {
        "host": provider.address.removeprefix("http://"), "accept": "*/*", "accept-encoding": "gzip, deflate",
        "user-agent": "Sapa/1.0", "content-type": "application/json", "authorization": "Bearer t",
        "content-length": "7",
    }  # fmt: skip
    assert len(head.splitlines()) == 9, "no header twice"
    assert fields_of(other)["content-type"] == "application/octet-stream"


@pytest.mark.parametrize("size", [7, 200_000])
async def test_a_body_of_any_size_arrives(size: int) -> None:
    async with open_provider(OK) as (provider, client):
        await client.call("POST", provider.address, content=b"x" * size)
    assert provider.requests[0][2] == b"x" * size


async def test_a_connection_serves_one_request_after_the_other() -> None:
    async with open_provider(*[OK] * 5) as (provider, client):
        for _ in range(3):
            await post(client, provider)
        assert provider.connections == 1
        await client.call("GET", provider.address)
        assert provider.connections == 1
        await asyncio.gather(post(client, provider), post(client, provider), return_exceptions=True)
    assert provider.connections == 2


COMPRESSED = gzip.compress(b"compressed")
BODIES = {
    "in chunks": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 200, b"abcde",
    ),
    "compressed": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(COMPRESSED) + COMPRESSED,
        200, b"compressed",
    ),
    "until the end": (b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall of it", 200, b"all of it"),
    "none": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    "after an interim response": (b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + OK, 200, b"ok"),
    "a redirect": (b"HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n", 302, b""),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
async def test_a_response_is_read_to_its_end(name: str) -> None:
    reply, status, body = BODIES[name]
    async with open_provider(reply, OK) as (provider, client):
        response = await post(client, provider)
        assert (response.status, response.body) == (status, body)
        assert (await post(client, provider)).body == b"ok", "the next call is not disturbed"


async def test_names_of_headers_are_in_lower_case() -> None:
    async with open_provider(b"HTTP/1.1 429 No\r\nRetry-After: 7\r\ncontent-length: 0\r\n\r\n") as (provider, client):
        assert (await post(client, provider)).headers["retry-after"] == "7"


LARGE = b"HTTP/1.1 200 OK\r\ncontent-length: 300000\r\n\r\n" + b"x" * 300_000
BOMB = gzip.compress(b"0" * 10_000_000)
BOMB = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(BOMB) + BOMB
UNCLEAR = {
    "closed without a response": None,
    "cut off": b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\nconnection: close\r\n\r\n{",
    "not HTTP": b"what?\r\n\r\n",
    "a head that is too long": b"HTTP/1.1 200 OK\r\na: " + b"x" * 20_000 + b"\r\n\r\n",
    "a compression that is none": b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nnope",
    "too large": LARGE,
    "too large when it is decompressed": BOMB,
    "too late": b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{",
}


@pytest.mark.parametrize("name", UNCLEAR)
async def test_a_request_that_may_have_arrived_is_sent_once(name: str) -> None:
    async with open_provider(OK, UNCLEAR[name], OK) as (provider, client):
        await post(client, provider)
        with pytest.raises(Unclear):
            await post(client, provider, seconds=0.5 if name == "too late" else 10, max_bytes=200_000)
        assert len(provider.requests) == 2
        assert (await post(client, provider)).body == b"ok"
    assert provider.connections == 2, "its connection serves nobody else"


async def test_a_provider_that_does_not_listen_gets_nothing() -> None:
    async with open_provider() as (provider, client):
        pass
    with pytest.raises(NotSent):
        await post(client, provider)
    await client.close()


@pytest.mark.parametrize("url", ["http://", "http:///x", "http://[::1", "nowhere"])
async def test_what_is_no_address_is_not_sent(url: str) -> None:
    client = HttpClient(read_settings({}).webhooks)
    with pytest.raises(NotSent) as refused:
        await client.call("POST", url, content=b"x")
    assert str(refused.value) == "the address is not valid"
    await client.close()


async def test_a_password_in_an_address_is_sent_as_a_header() -> None:
    async with open_provider(OK) as (provider, client):
        await client.call("POST", provider.address.replace("//", "//user:pass@") + "/x", content=b"x")
    assert fields_of(provider.requests[0][1])["authorization"] == "Basic dXNlcjpwYXNz"


async def test_a_header_cannot_add_another() -> None:
    async with open_provider(OK) as (provider, client):
        for text in ("a\r\nx: y", "a\nb", "a\0"):
            with pytest.raises(ValueError, match=r"header|detected"):
                await client.call("POST", provider.address, content=b"x", headers={"authorization": text})
    assert provider.requests == []
