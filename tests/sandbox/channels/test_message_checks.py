"""The checks of a message are total: whatever JSON comes, the answer is a refusal in Meta's shape or none."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.sandbox.channels.graph_errors import build_refusal
from sapa.sandbox.channels.interactive_checks import HEADERS
from sapa.sandbox.channels.message_checks import ACCEPTED_MEDIA, TYPES, find_late_failure, find_mistake
from sapa.sandbox.channels.people import build_user_id, get_number
from sapa.sandbox.external_access import MALFORMED

OWN = "+12025550140"
NAMES = (
    "type text body image link id caption interactive action buttons reply title sections rows header footer parameters"
    " name url display_text template language code components location latitude longitude contacts formatted_name"
    " first_name reaction message_id emoji context cards product_items catalog_id"
).split()

values = st.recursive(
    st.none() | st.booleans() | st.integers(-200, 200) | st.text(max_size=30) | st.sampled_from([*TYPES, *HEADERS]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=20,
)


@given(
    kind=st.sampled_from(TYPES),
    content=values,
    more=st.dictionaries(st.sampled_from([*NAMES, "to", "recipient", "messaging_product"]), values, max_size=4),
)
def test_any_json_is_accepted_or_refused(kind: str, content: Any, more: dict[str, Any]) -> None:
    body = {"messaging_product": "whatsapp", "to": "628123456789", "type": kind, kind: content, **more}
    try:
        refusal = find_mistake(OWN, body)
    except MALFORMED:  # answered as an invalid parameter
        return
    if refusal is None:
        find_late_failure(body)
        return
    answer = build_refusal(refusal)
    error = json.loads(answer.body)["error"]
    assert answer.status in {400, 403, 404}
    assert error["message"].startswith(f"(#{error['code']})")


@given(
    title=st.text(min_size=1, max_size=40),
    count=st.integers(0, 5),
    length=st.integers(0, 2000),
)
def test_buttons_are_accepted_exactly_within_their_limits(title: str, count: int, length: int) -> None:
    replies = [{"type": "reply", "reply": {"id": f"b{n}", "title": f"{title}{n}"}} for n in range(count)]
    interactive = {"type": "button", "body": {"text": "x" * length}, "action": {"buttons": replies}}
    body = {"messaging_product": "whatsapp", "to": "628123456789", "type": "interactive", "interactive": interactive}
    is_right = 1 <= count <= 3 and len(title) <= 19 and 1 <= length <= 1024
    refusal = find_mistake(OWN, body)
    assert (refusal is None) == is_right
    assert refusal is None or refusal.code == 131009


@pytest.mark.parametrize("kind", ACCEPTED_MEDIA)
def test_a_link_is_judged_by_its_ending(kind: str) -> None:
    def send(link: str) -> tuple[int, str] | None:
        body = {"messaging_product": "whatsapp", "to": "628123456789", "type": kind, kind: {"link": link}}
        assert find_mistake(OWN, body) is None
        return find_late_failure(body)

    for ending in ACCEPTED_MEDIA[kind]:
        assert send(f"https://shop.example/a.{ending.upper()}?v=1") is None
    assert send("https://shop.example/download") is None
    failure = send("https://shop.example/a.bmp")
    assert failure is not None
    assert failure[0] == 131053


@given(st.from_regex(r"[1-9][0-9]{7,13}", fullmatch=True))
def test_a_number_can_be_read_from_its_user_id(number: str) -> None:
    assert get_number(build_user_id(number)) == number
    assert get_number(f"+{number}") == number


def test_a_foreign_user_id_stays_one() -> None:
    assert get_number("ID.13491208655302741918") == "ID.13491208655302741918"
    assert get_number("sim_happy") == "sim_happy"
