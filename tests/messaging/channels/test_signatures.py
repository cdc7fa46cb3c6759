"""Callbacks are admitted by their signature, and any content is parsed without an exception."""

import json
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.values.provider_accounts import BadSignature
from tests import depth
from tests.messaging.channels.accounts import ACCOUNTS, SECRETS, WORD
from tests.messaging.channels.signing import META, SIGNED, sign


@pytest.mark.parametrize("source", SIGNED)
def test_a_wrong_signature_is_refused(source: Source) -> None:
    channel = CHANNELS[source]
    body = '{"entry":[{"emoji":"☕","accent":"é"}]}'.encode()
    right = sign(source, body)
    channel.check_callback(SECRETS, right, body)
    name, value = next(iter(right.items()))
    wrong: list[tuple[Mapping[str, str], Mapping[str, str], bytes]] = [
        (SECRETS, {}, body),
        (SECRETS, {name: ""}, body),
        (SECRETS, {name: "sha256="}, body),
        (SECRETS, {name: value[:-1] + ("0" if value[-1] != "0" else "1")}, body),
        (SECRETS, {name: value.upper()}, body),
        (SECRETS, {name: "☕"}, body),
        (SECRETS, sign(source, body, "another secret"), body),
        (SECRETS, right, body + b" "),
        (SECRETS, right, json.dumps(json.loads(body)).encode()),
        ({**SECRETS, "app_secret": ""}, sign(source, body, ""), body),
    ]
    for credentials, headers, raw in wrong:
        with pytest.raises(BadSignature):
            channel.check_callback(credentials, headers, raw)


@pytest.mark.parametrize(("age", "is_taken"), [(0, True), (290, True), (-290, True), (310, False), (-310, False)])
def test_tiktoks_signature_ages(age: int, is_taken: bool) -> None:
    body = b"{}"
    headers = sign(Source.SHORT_VIDEO, body, at=time.time() - age)
    channel = CHANNELS[Source.SHORT_VIDEO]
    outcome: AbstractContextManager[object] = nullcontext() if is_taken else pytest.raises(BadSignature)
    with outcome:
        channel.check_callback(SECRETS, headers, body)


@pytest.mark.parametrize("source", META)
def test_a_verification_request_gets_its_challenge_back(source: Source) -> None:
    channel = CHANNELS[source]
    query = {"hub.mode": "subscribe", "hub.verify_token": WORD, "hub.challenge": "1158201444"}
    assert channel.confirm(SECRETS, query) == "1158201444"
    assert channel.confirm(SECRETS, {**query, "hub.verify_token": "guess"}) is None
    assert channel.confirm(SECRETS, {**query, "hub.mode": "unsubscribe"}) is None
    assert channel.confirm({}, {**query, "hub.verify_token": ""}) is None
    assert channel.confirm(SECRETS, {}) is None


WORDS = (
    "entry changes value field messages statuses contacts metadata message_echoes history threads from to id type text "
    "body timestamp status errors code context profile name wa_id user_id reaction edit revoke system interactive "
    "messaging standby message mid attachments payload url delivery read watermark mids sender recipient postback "
    "quick_reply event content conversation_id message_id image media_id phone_number_id"
).split()
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(
    ["messages", "text", "image", "interactive", "reaction", "edit", "system", "sent", "1122", "5566", "im_receive_msg"]
)  # fmt: skip
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=30,
)


@pytest.mark.parametrize("source", SIGNED)
@settings(max_examples=depth.examples(60))
@given(value=ANYTHING)
def test_any_callback_is_read_or_named_as_none(source: Source, value: Any) -> None:
    body = json.dumps(value).encode()
    for raw in (body, body[:-1]):
        try:
            items = CHANNELS[source].read_callback(ACCOUNTS[source], raw)
        except ValueError:  # it is set aside with its reason
            continue
        for item in items:
            assert "\x00" not in repr(item)
            assert "\\u0000" not in repr(item)


@settings(max_examples=depth.examples(60))
@given(
    change=ANYTHING, field=st.sampled_from(["messages", "smb_message_echoes", "history", "user_preferences", "news"])
)
def test_any_change_of_whatsapp_is_read_without_an_exception(change: Any, field: str) -> None:
    value = {"entry": [{"changes": [{"field": field, "value": dict.fromkeys(WORDS, change)}]}]}
    body = json.dumps(value).encode()
    source = Source.MSGAPP_CLOUD
    CHANNELS[source].read_callback(ACCOUNTS[source], body)
