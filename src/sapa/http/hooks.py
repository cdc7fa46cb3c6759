"""Hooks: providers' callbacks, and the simulators that stand in for providers."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from sapa.http.errors import NotFound, explain
from sapa.values.hook_calls import JSON, HookAnswer, HookCall

Context = TypeVar("Context")


class Hook(Struct, Generic[Context], frozen=True):
    """Handles the calls under one prefix, which ends in a slash."""

    prefix: str
    answer: Callable[[Context, HookCall], Awaitable[HookAnswer]]
    find_target: "FindTarget[Context] | None" = None
    """A hook without it is served on the loopback address only."""
    keeps_order: bool = False
    """Whether calls that arrive side by side, with their account looked up before, are stored in their order."""


class HookTarget(Struct, frozen=True):
    account: Any
    """Whose path it is."""
    max_bytes: int


FindTarget = Callable[[Context, str], Awaitable[HookTarget | None]]
"""Looks a path up, before anything is read; None if its token is unknown."""


async def find_hook_account(context: Context, hooks: Sequence[Hook[Context]], path: str) -> Any | None:
    """Whose path it is, if its hook keeps the order of calls; None for every other path."""
    for hook in hooks:
        if hook.keeps_order and hook.find_target is not None and path.startswith(hook.prefix):
            target = await hook.find_target(context, path)
            return target.account if target else None
    return None


async def answer_hook(context: Context, hooks: Sequence[Hook[Context]], call: HookCall) -> HookAnswer:
    """Calls the hook whose prefix the path begins with; errors leave in the API's envelope."""
    hook = next((hook for hook in hooks if call.path.startswith(hook.prefix)), None)
    if hook is None:
        return HookAnswer(NotFound.status, NotFound().encode())
    try:
        return await hook.answer(context, call)
    except Exception as error:
        refusal = explain(error, call.request_id, hook=hook.prefix)  # the rest of the path may be secret
        return HookAnswer(refusal.status, refusal.encode(), {**JSON, **refusal.headers})
