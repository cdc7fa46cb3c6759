"""Requests and responses of TikTok's Business Messaging API. An error is a code in the body, whatever the HTTP
status."""

from collections.abc import Mapping
from typing import Any

from sapa.messaging.channels.interface import (
    UNKNOWN_ERROR,
    ErrorMeaning,
    OutgoingMessage,
    SendReceipt,
    SendRefusal,
)
from sapa.messaging.channels.meta import find_retry_after
from sapa.messaging.channels.reading import Node, get, node, parse_json, text
from sapa.messaging.channels.render import render
from sapa.outbound.client import ProviderResponse, Unclear

_ERROR_MEANINGS: Mapping[int, ErrorMeaning] = {
    40001: ErrorMeaning("auth"),
    40002: ErrorMeaning("validation"),
    40064: ErrorMeaning("rate", 60.0),
    40100: ErrorMeaning("rate", 10.0),
    40102: ErrorMeaning("auth"),
    40103: ErrorMeaning("auth"),
    40104: ErrorMeaning("auth"),
    40105: ErrorMeaning("auth"),
}
_SERVER_ERRORS = range(50000, 60000)


def build_text(business_id: str, message: OutgoingMessage) -> dict[str, Any]:
    body = render(message.content)
    return {**_envelope(business_id, message), "message_type": "TEXT", "text": {"body": body}, **_quote(message)}


def build_image(business_id: str, message: OutgoingMessage, media_id: str) -> dict[str, Any]:
    return {**_envelope(business_id, message), "message_type": "IMAGE", "image": {"media_id": media_id}}


def _envelope(business_id: str, message: OutgoingMessage) -> dict[str, Any]:
    return {"business_id": business_id, "recipient_type": "CONVERSATION", "recipient": message.to.value}


def _quote(message: OutgoingMessage) -> dict[str, Any]:
    quoted = {"referenced_message_id": message.quoted}
    return {"referenced_message_info": quoted} if message.quoted else {}


def parse_sent(response: ProviderResponse) -> SendReceipt | SendRefusal:
    data = parse_data(response)
    if isinstance(data, SendRefusal):
        return data
    message_id = text(data, "message", "message_id") or text(data, "message_id")
    if message_id is None:
        raise Unclear("the channel accepted the message but returned no id")
    return SendReceipt(message_id)


def parse_data(response: ProviderResponse) -> Node | SendRefusal:
    """The response's data; raises Unclear if the response cannot be understood."""
    found = parse_json(response.body)
    code = get(found, "code")
    if not isinstance(code, int) or code in _SERVER_ERRORS or (response.status >= 500 and code == 0):
        raise Unclear(f"the channel answered {response.status} without an outcome")
    if code == 0:
        return node(found, "data")
    reason = text(found, "message") or "the channel gave no reason"
    meaning = classify(code, reason)
    if response.status >= 500 and not meaning.is_definite:
        raise Unclear(f"the channel answered {response.status}: {reason}")
    return SendRefusal(str(code), reason, meaning.category, find_retry_after(response, meaning))


def classify(code: int, reason: str) -> ErrorMeaning:
    """TikTok documents no code for a closed window."""
    if code not in {40064, 40100} and "window" in reason.lower():
        return ErrorMeaning("window")
    return _ERROR_MEANINGS.get(code, UNKNOWN_ERROR)
