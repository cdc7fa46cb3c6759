"""Parsing of recipients and sources."""

import pytest

from sapa.http.errors import Invalid
from sapa.messaging.channels.interface import Identity, Source
from sapa.messaging.channels.registry import CHANNELS, find_source
from sapa.messaging.sending.preflight import (
    parse_recipient,
    parse_region,
    parse_sources,
)
from sapa.values.company import Company

LIVE = Company(1, "live", "ID", "IDR")
TEST = Company(2, "test", "ID", "IDR")
WHATSAPP = CHANNELS[Source.MSGAPP_CLOUD].capabilities.identities
KINDS = {kind.name: kind for channel in CHANNELS.values() for kind in channel.capabilities.identities}


@pytest.mark.parametrize(
    ("word", "source"),
    [
        ("MSGAPP_CLOUD", Source.MSGAPP_CLOUD),
        ("msgapp cloud api", Source.MSGAPP_CLOUD),
        ("msgapp_cloud_api", Source.MSGAPP_CLOUD),
        (" Msgapp-Cloud ", Source.MSGAPP_CLOUD),
        ("msgapp coex", Source.MSGAPP_COEX),
        ("photo_social", Source.PHOTO_SOCIAL),
        ("Social Network", Source.SOCIAL_NETWORK),
        ("short_video", Source.SHORT_VIDEO),
        ("mail", Source.MAIL),
        ("WIDGET", Source.WIDGET),
        ("telegram", None),
        ("", None),
    ],
)
def test_a_channel_has_several_spellings(word: str, source: Source | None) -> None:
    assert find_source(word) == source


def test_sources_are_one_or_several_in_order_each_once() -> None:
    assert parse_sources("mail") == [Source.MAIL]
    assert parse_sources(["widget", "MAIL", "mail"]) == [Source.WIDGET, Source.MAIL]
    assert parse_sources(None) == []
    with pytest.raises(Invalid, match="sources"):
        parse_sources(["mail", "fax"])


@pytest.mark.parametrize(
    ("to", "country_code", "number"),
    [
        ("+628123456789", None, "+628123456789"),
        ("0812 3456-789", None, "+628123456789"),
        ("(0812) 3456 789", None, "+628123456789"),
        ("00628123456789", None, "+628123456789"),
        ("628123456789", None, "+628123456789"),
        ("8123456789", "ID", "+628123456789"),
        ("08123456789", "62", "+628123456789"),
        ("08123456789", "+62", "+628123456789"),
        ("628123456789", "62", "+628123456789"),
        ("201 555 0123", "US", "+12015550123"),
        ("2015550123", "1", "+12015550123"),
        ("11 96123-4567", "BR", "+5511961234567"),
        ("+12015550100", "ID", "+12015550100"),
        ("+12015550122", None, "+12015550122"),
        ("+5215599887766", None, "+525599887766"),
    ],
)
def test_numbers_are_stored_in_their_international_form(to: str, country_code: str | None, number: str) -> None:
    assert parse_recipient(to, country_code, LIVE, WHATSAPP) == Identity("phone", number)


@pytest.mark.parametrize(
    "to", ["abc", "+", "+62", "12", "+62812345678901234567", "08123x456", "ayu@example.com", "sim_happy"]
)
def test_an_invalid_number_is_refused_by_name(to: str) -> None:
    with pytest.raises(Invalid, match=r"^to: must be a phone number"):
        parse_recipient(to, None, LIVE, WHATSAPP)


@pytest.mark.parametrize("code", ["XX", "999", "six", "+0", "ID62"])
def test_an_unknown_country_is_refused(code: str) -> None:
    with pytest.raises(Invalid, match="countryCode"):
        parse_region(code, LIVE)


def test_a_recipient_without_a_number_is_reached_by_user_id() -> None:
    assert parse_recipient("US.13491208655302741918", None, LIVE, WHATSAPP) == Identity(
        "bsuid", "US.13491208655302741918"
    )
    assert parse_recipient("ID.ENT.118abc", None, LIVE, WHATSAPP).kind == "bsuid"


@pytest.mark.parametrize(
    ("to", "kind", "company", "is_good"),
    [
        ("ayu@example.com", "email", LIVE, True),
        ("Ayu@Example.COM", "email", LIVE, True),
        ("bounce@simulator.test", "email", TEST, True),
        ("ayu", "email", LIVE, False),
        ("1784140000000001", "igsid", LIVE, True),
        ("sim_happy", "igsid", TEST, True),
        ("sim_happy", "igsid", LIVE, False),
        ("not an id", "psid", LIVE, False),
        ("conv-17:abc", "tt_conv", LIVE, True),
        ("two words", "tt_conv", LIVE, False),
        ("vis_17", "visitor", LIVE, True),
    ],
)
def test_other_ids_by_their_form(to: str, kind: str, company: Company, is_good: bool) -> None:
    if is_good:
        assert parse_recipient(to, None, company, [KINDS[kind]]).kind == kind
    else:
        with pytest.raises(Invalid, match=r"^to: must be"):
            parse_recipient(to, None, company, [KINDS[kind]])
