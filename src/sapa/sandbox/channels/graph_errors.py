"""Errors in the form of the Graph API."""

from typing import Any

from msgspec import Struct

from sapa.sandbox.channels.simulator import build_answer, new_token
from sapa.values.hook_calls import HookAnswer


class GraphRefusal(Struct, frozen=True, kw_only=True):
    """Why a simulator refuses a request."""

    code: int
    message: str
    """Without its code."""
    details: str | None = None
    """Of a message: what is wrong with it."""
    subcode: int | None = None
    title: str | None = None
    """Of a template's creation: words for the person who made it, with `advice`."""
    advice: str | None = None
    status: int = 400
    type: str = "OAuthException"
    has_prefix: bool = True
    """Whether the message begins with the code."""


def build_refusal(refusal: GraphRefusal) -> HookAnswer:
    prefix = f"(#{refusal.code}) " if refusal.has_prefix else ""
    error: dict[str, Any] = {"message": prefix + refusal.message, "type": refusal.type, "code": refusal.code}
    if refusal.subcode is not None:
        error["error_subcode"] = refusal.subcode
        error["is_transient"] = False
    if refusal.details is not None:
        error["error_data"] = {"messaging_product": "whatsapp", "details": refusal.details}
    if refusal.title is not None:
        error |= {"error_user_title": refusal.title, "error_user_msg": refusal.advice}
    return build_answer({"error": error | {"fbtrace_id": new_token(11)}}, refusal.status)
