"""Mail that is written to be slow: the time to read it grows with its size and not faster, whatever its shape."""

import time
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapa.messaging.channels.interface import ReceivedItem, Source
from sapa.messaging.channels.mail.adapter import MAIL
from sapa.messaging.channels.mail.html_text import extract_text
from sapa.messaging.channels.mail.mime import MAX_HEADER_LENGTH, MAX_NESTING, MAX_PARTS, parse_mail
from tests import depth
from tests.messaging.channels.accounts import ACCOUNTS

ACCOUNT = ACCOUNTS[Source.MAIL]
SMALL, FACTOR = 15_000, 8
SLACK = 3
"""Of the measurement. Quadratic growth is FACTOR times the linear one."""
FLOOR_SECONDS = 0.02
"""Less than this is noise."""


def page(unit: str) -> Callable[[int], bytes]:
    return lambda size: b"Content-Type: text/html\r\n\r\n" + (unit * (size // len(unit))).encode()


def header(name: str, unit: str) -> Callable[[int], bytes]:
    return lambda size: f"{name}: {unit * (size // len(unit))}\r\n\r\nHalo".encode()


def folded(name: str, unit: str) -> Callable[[int], bytes]:
    return lambda size: f"{name}: ".encode() + f"{unit}\r\n ".encode() * (size // len(unit)) + b"\r\n\r\nHalo"


def nested(size: int) -> bytes:
    unit = 'Content-Type: multipart/mixed; boundary="{n}."\r\n\r\n--{n}.\r\n'
    return "".join(unit.format(n=n) for n in range(size // len(unit))).encode() + b"\r\nHalo"


def same_boundary(size: int) -> bytes:
    head = b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
    return head + (b"--b\r\n" + head) * (size // 55)


def parts(line: bytes) -> Callable[[int], bytes]:
    head = b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
    return lambda size: head + line * (size // len(line))


def attached_mails(size: int) -> bytes:
    unit = b"Content-Type: message/rfc822\r\n\r\n"
    return unit * (size // len(unit)) + b"Halo"


def bounce(unit: str) -> Callable[[int], bytes]:
    head = "From: MAILER-DAEMON@example.com\r\nSubject: failure notice\r\n\r\n"
    return lambda size: (head + unit * (size // len(unit))).encode()


SHAPES: Mapping[str, Callable[[int], bytes]] = {
    "unfinished tags": page("<a "),
    "unfinished comments": page("<!--"),
    "unfinished end tags": page("</a "),
    "unfinished declarations": page("<!["),
    "unfinished instructions": page("<?"),
    "unfinished values": page('<a b="'),
    "values with the other quote": page("<a b='\">"),
    "scripts in scripts": page("<script><style>"),
    "less-than signs": page("<"),
    "spaces between tags": page("<b> </b>"),
    "empty lines": page("<br> "),
    "character references": page("&#1"),
    "one long reference": lambda size: b"Content-Type: text/html\r\n\r\n&#" + b"1" * size,
    "ampersands": page("&"),
    "equals signs": page("<a = "),
    "unfinished encoded words": header("Subject", "=?utf-8?q?a"),
    "encoded words": header("Subject", "=?utf-8?q?=C3=A9?= "),
    "encoded words in punycode": header("Subject", "=?punycode?q?a-b?= "),
    "long references": header("References", "<a@b> "),
    "unfinished references": header("References", "<a"),
    "folded references": folded("References", "<a@b>"),
    "comments in From": header("From", "("),
    "quotes in From": header("From", '"a'),
    "addresses in From": header("From", "a@b, "),
    "many headers": lambda size: b"X: y\r\n" * (size // 6) + b"\r\nHalo",
    "many results": header("Authentication-Results", "mx; dkim=pass;"),
    "parameters": header("Content-Type", ";a=b"),
    "quoted parameters": header("Content-Type", '";'),
    "nested multiparts": nested,
    "nested multiparts with one boundary": same_boundary,
    "many parts": parts(b"\r\n--b\r\n\r\n"),
    "almost boundaries": parts(b"\r\n--bb\r\n"),
    "dashes": parts(b"\r\n-"),
    "attached mails": attached_mails,
    "punycode": lambda size: b"Content-Type: text/plain; charset=punycode\r\n\r\n" + b"a-b" * (size // 3),
    "broken base64": lambda size: b"Content-Transfer-Encoding: base64\r\n\r\n" + b"=A" * (size // 2),
    "quoted-printable": lambda size: b"Content-Transfer-Encoding: quoted-printable\r\n\r\n" + b"=\r\n" * (size // 3),
    "bounce with numbers": bounce("5.1.1"),
    "bounce with ids": bounce("0190a1b2-c3d4-7e5f-8a9b-"),
    "bounce with addresses": bounce("a@"),
    "bounce with spaces": bounce("delivery "),
}


def measure(body: bytes) -> float:
    """Processor time, so that other programs on the machine do not count."""
    best = 1e9
    for _ in range(3):
        started = time.process_time()
        MAIL.read_callback({**ACCOUNT, "authentication_authority": "mx"}, body)
        best = min(best, time.process_time() - started)
    return best


@pytest.mark.parametrize("shape", SHAPES)
def test_the_time_grows_no_faster_than_the_size(shape: str) -> None:
    build = SHAPES[shape]
    mail = b"From: ayu@example.com\r\n"
    small, large = measure(mail + build(SMALL)), measure(mail + build(SMALL * FACTOR))
    assert large <= max(small, FLOOR_SECONDS / FACTOR) * FACTOR * SLACK, (small, large)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.long
def test_the_largest_mail_takes_less_than_a_process_may(shape: str) -> None:
    body = b"From: ayu@example.com\r\n" + SHAPES[shape](1_000_000)
    started = time.process_time()
    MAIL.read_callback(ACCOUNT, body)
    assert time.process_time() - started < 3


def test_headers_parts_and_nesting_are_limited() -> None:
    mail = parse_mail(nested(1_000_000))
    levels, part = 0, mail
    while part.parts:
        levels, part = levels + 1, part.parts[0]
    assert levels == MAX_NESTING
    assert len(list(parse_mail(parts(b"\r\n--b\r\n\r\nx")(100_000)).walk())) <= MAX_PARTS + 1
    assert len(parse_mail(header("Subject", "a")(100_000)).header("Subject")) <= MAX_HEADER_LENGTH


def test_text_before_an_unfinished_tag_is_read() -> None:
    assert extract_text("<p>Halo</p><p>Apa kabar</p><a " + "<a " * 1000) == "Halo\n\nApa kabar"


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("1 < 2 & 3 > 2", "1 < 2 & 3 > 2"),
        ('<a title="a > b">link</a>', "link"),
        ("<p>don't</p><p title=it's>x</p>", "don't\n\nx"),
        ("a<!-- <b> -->b", "ab"),
        ("<head><title>t</title><style>p > a {}</style></head><body>x", "x"),
        ("<head><body>x", "x"),
        ("<script>if (a < b) '</p>'</script>x", "x"),
        ("a<br/>b<BR>c", "a\nb\nc"),
        ("&lt;p&gt; &#9749; &nope;", "<p> ☕ &nope;"),
        ("<!doctype html><?xml version='1.0'?>x", "x"),
    ],
)
def test_a_page_is_read_as_a_browser_shows_it(markup: str, text: str) -> None:
    assert extract_text(markup) == text


@settings(max_examples=depth.examples(200))
@given(st.text(alphabet="<>/!-&#;\"'= abcp1\n", max_size=200))
def test_any_page_is_read(markup: str) -> None:
    assert "\n\n\n" not in extract_text(markup)


@settings(max_examples=depth.examples(200))
@given(st.lists(st.sampled_from(["--b", "--c", "\r\n", "Content-Type: multipart/mixed; boundary=c", "x", ":", " "])))
def test_any_multipart_is_read(lines: list[str]) -> None:
    body = 'From: a@b.c\r\nContent-Type: multipart/mixed; boundary="b"\r\n\r\n' + "".join(lines)
    [item] = MAIL.read_callback(ACCOUNT, body.encode())
    assert isinstance(item, ReceivedItem)
