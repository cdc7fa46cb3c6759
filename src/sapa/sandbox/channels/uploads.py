"""Simulates the upload of samples, which templates with files need: a session, then the bytes."""

from sapa.sandbox.channels.graph_errors import GraphRefusal, build_refusal
from sapa.sandbox.channels.simulator import build_answer, new_token
from sapa.values.hook_calls import HookAnswer, HookCall

SESSION = "upload:"


def open_session(call: HookCall) -> HookAnswer:
    """POST /app/uploads"""
    length, type = call.query.get("file_length", ""), call.query.get("file_type", "")
    if not length.isdigit() or int(length) == 0 or "/" not in type:
        return build_refusal(GraphRefusal(code=100, message="file_length and file_type are required"))
    return build_answer({"id": f"{SESSION}{length}.{new_token(24)}"})


def take_bytes(call: HookCall, session: str) -> HookAnswer:
    """POST /upload:…; the session's id has the length that it was opened for."""
    expected = session.removeprefix(SESSION).partition(".")[0]
    if call.headers.get("file_offset") != "0" or str(len(call.body)) != expected:
        return build_refusal(GraphRefusal(code=100, message="The file does not have the length of its session"))
    return build_answer({"h": f"4::{new_token(32)}"})
