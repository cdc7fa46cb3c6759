"""The values of a send, and the places of a template that they fill."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.http.errors import Invalid
from sapa.messaging.channels.interface import (
    Media,
)
from sapa.messaging.channels.native_contents import (
    MapLocation,
    TemplateParameter,
)
from sapa.messaging.channels.template_content import Header, TemplateButton, TemplateCard, TemplateContent
from sapa.messaging.templates.filling import FilledTemplate, fill_template, list_param_places, list_secrets, mask_values
from sapa.messaging.templates.text import preview
from sapa.messaging.templates.types import TemplateParamsMismatch, TemplateValues

Json = dict[str, Any]

LINK = TemplateButton(type="url", text="Lacak", url="https://s.id/{{1}}")
FULL = TemplateContent(
    category="UTILITY",
    header=Header("text", "Nota {{1}}"),
    body="Halo {{2}}, pesanan {{1}} dikirim, {{2}} ya.",
    buttons=[TemplateButton(type="quick_reply", text="Ya"), LINK],
)
NAMED = TemplateContent(category="UTILITY", parameter_format="NAMED", body="Halo {{name}}, pesanan {{order}} dikirim.")
PLACE = TemplateContent(category="UTILITY", body="Toko kami", header=Header("location"))
CARDS = TemplateContent(
    category="MARKETING",
    body="Pilihan kopi",
    cards=[TemplateCard(Header("image"), "Kopi {{1}} hari ini", [LINK])] * 2,
)
CODE = TemplateContent(
    category="AUTHENTICATION",
    body="{{1}} adalah kode Anda.",
    buttons=[TemplateButton(type="otp", text="Salin", otp_type="copy_code")],
)


def fill(
    content: TemplateContent, params: list[str], values: Json | None = None, url: str | None = None
) -> FilledTemplate:
    parsed = None if values is None else msgspec.convert(values, TemplateValues)
    return fill_template("t", content, params, parsed, url)


def test_params_fill_the_body_then_the_header_then_the_buttons() -> None:
    filled = fill(FULL, ["INV-1", "Ayu", "1042", "abc"])
    assert [parameter.text for parameter in filled.body] == ["INV-1", "Ayu"]
    assert filled.header == TemplateParameter("1042")
    assert [(button.index, button.text) for button in filled.buttons] == [(1, "abc")]
    assert preview(filled).text == "Nota 1042\n\nHalo Ayu, pesanan INV-1 dikirim, Ayu ya.\n\nLacak: https://s.id/abc"


def test_components_take_places_away_from_params() -> None:
    values = {"header": {"text": "1042"}, "buttons": [{"index": 0, "payload": "yes"}, {"index": 1, "suffix": "abc"}]}
    filled = fill(FULL, ["INV-1", "Ayu"], values)
    assert [(button.index, button.type, button.text) for button in filled.buttons] == [
        (0, "quick_reply", "yes"),
        (1, "url", "abc"),
    ]
    assert [place.label for place in list_param_places(FULL, msgspec.convert(values, TemplateValues))] == [
        "{{1}}",
        "{{2}}",
    ]


def test_names_are_filled_by_name_or_in_their_order() -> None:
    by_name = fill(NAMED, [], {"body": {"order": "INV-1", "name": "Ayu"}})
    assert by_name.body == [TemplateParameter("Ayu", "name"), TemplateParameter("INV-1", "order")]
    assert fill(NAMED, ["Ayu", "INV-1"]).body == by_name.body


def test_a_value_that_contains_a_placeholder_is_not_filled_in_again() -> None:
    assert preview(fill(FULL, ["{{2}}", "{{1}}", "x", "y"])).body == "Halo {{1}}, pesanan {{2}} dikirim, {{1}} ya."


def test_a_location_and_cards_come_by_components() -> None:
    filled = fill(PLACE, [], {"header": {"location": {"latitude": -6.2, "longitude": 106.8}}})
    assert filled.header == MapLocation(-6.2, 106.8)
    card = {
        "header": {"mediaUrl": "https://a.example/x.jpg"},
        "body": ["Gayo"],
        "buttons": [{"index": 0, "suffix": "g"}],
    }
    filled = fill(CARDS, [], {"cards": [card, card]})
    assert filled.cards[1].header == Media("image", "https://a.example/x.jpg")
    assert "Kopi Gayo hari ini\nhttps://a.example/x.jpg\nLacak: https://s.id/g" in preview(filled).text


def test_a_code_goes_into_body_and_button_and_is_hidden_in_both() -> None:
    filled = fill(CODE, ["482913"])
    assert (filled.body[0].text, filled.buttons[0].type, filled.buttons[0].text) == ("482913", "otp", "482913")
    assert list_secrets(filled) == ["482913"]
    assert preview(mask_values(filled)).text == "•••••• adalah kode Anda."


@pytest.mark.parametrize(
    ("content", "params", "values", "places"),
    [
        (FULL, ["x"], None, ["params"]),
        (FULL, ["x"] * 5, None, ["params"]),
        (FULL, ["x"] * 4, {"body": ["x", "y"]}, ["params"]),
        (FULL, ["x", "y"], {"body": ["x"]}, ["components.body"]),
        (NAMED, [], {"body": {"name": "x"}}, ["components.body"]),
        (NAMED, [], {"body": {"name": "x", "order": "y", "city": "z"}}, ["components.body"]),
        (FULL, ["x"] * 3, {"header": {"location": {"latitude": 1, "longitude": 2}}}, ["components.header"]),
        (FULL, ["x"] * 3, {"buttons": [{"index": 1, "payload": "x"}]}, ["components.buttons[0]"]),
        (FULL, ["x"] * 4, {"buttons": [{"index": 2, "suffix": "x"}]}, ["components.buttons[0].index"]),
        (PLACE, [], None, ["components.header"]),
        (CARDS, [], None, ["components.cards"]),
        (CARDS, [], {"cards": [{}, {}]}, ["components.cards[0].body", "components.cards[0].header"]),
        (CODE, [], None, ["params"]),
    ],
)
def test_a_mismatch_lists_what_is_wrong_and_what_the_template_takes(
    content: TemplateContent, params: list[str], values: Json | None, places: list[str]
) -> None:
    with pytest.raises(TemplateParamsMismatch) as refused:
        fill(content, params, values)
    assert refused.value.details is not None
    found = [detail.field for detail in refused.value.details]
    assert found[: len(places)] == places
    if content is FULL:
        assert {"components.body", "components.header", "components.buttons[1]"} <= set(found)


def test_the_number_of_params_is_explained_by_their_places() -> None:
    with pytest.raises(
        TemplateParamsMismatch, match=r"expected 4 \(\{\{1\}\}, \{\{2\}\}, header: \{\{1\}\}, buttons\[1\]"
    ):
        fill(FULL, [])
    plain = TemplateContent(category="UTILITY", body="Halo {{1}}, {{2}} ya")
    with pytest.raises(TemplateParamsMismatch, match=r"expected 2 \(\{\{1\}\}, \{\{2\}\}\), got 1"):
        fill(plain, ["x"])


@pytest.mark.parametrize(
    ("content", "params", "values", "url", "field"),
    [
        (FULL, ["x", " ", "y", "z"], None, None, "params[1]"),
        (FULL, ["x"] * 4, None, "https://a.example/x.jpg", "mediaUrl"),
        (NAMED, [], {"body": {"name": "", "order": "x"}}, None, "components.body"),
    ],
)
def test_a_value_that_no_place_can_have_is_invalid(
    content: TemplateContent, params: list[str], values: Json | None, url: str | None, field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        fill(content, params, values, url)
    assert refused.value.details is not None
    assert refused.value.details[0].field == field


@given(count=st.integers(0, 8), extra=st.integers(-2, 2), values=st.lists(st.text(min_size=1, max_size=5), max_size=12))
def test_the_filled_text_has_exactly_the_params(count: int, extra: int, values: list[str]) -> None:
    numbers = range(1, count + 1)
    body = "Halo " + " dan ".join(f"{{{{{number}}}}}" for number in numbers) + " ya"
    content = TemplateContent(category="UTILITY", body=body)
    params = (values * 10)[: max(0, count + extra)]
    if len(params) != count:
        with pytest.raises(TemplateParamsMismatch):
            fill(content, params)
    elif not all(param.strip() for param in params):
        with pytest.raises(Invalid):
            fill(content, params)
    else:
        assert preview(fill(content, params)).body == "Halo " + " dan ".join(params) + " ya"
