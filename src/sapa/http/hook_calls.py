"""Where providers call. Nothing is read from a caller without a valid token."""

from collections.abc import Sequence
from urllib.parse import parse_qsl

from sapa.context import AppContext
from sapa.http.errors import MethodNotAllowed, NotFound, explain
from sapa.http.exchange import Receive, Scope, Send, new_request_id
from sapa.http.hooks import Hook, answer_hook
from sapa.http.incoming import ARRIVED_BODY, IncomingBody
from sapa.values.hook_calls import JSON, HookAnswer, HookCall

HOOK_SECONDS = 30.0
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


class HookCalls:
    """The ASGI app of all hooks that are reached from outside. Callbacks come by the thousand, so no framework stands
    before it."""

    def __init__(self, context: AppContext, hooks: Sequence[Hook[AppContext]]) -> None:
        self._context = context
        self._hooks = [hook for hook in hooks if hook.find_target is not None]
        self.prefixes = tuple(hook.prefix for hook in self._hooks)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = new_request_id()
        incoming = IncomingBody(receive, self._context.large_bodies, scope.get(ARRIVED_BODY))
        try:
            answer = await self._answer(scope, incoming, request_id)
        except Exception as error:
            refusal = explain(error, request_id, method=scope["method"])
            answer = HookAnswer(refusal.status, refusal.encode(), {**JSON, **refusal.headers})
        finally:
            incoming.release()
        headers = [(b"x-request-id", request_id.encode()), (b"content-length", b"%d" % len(answer.body))]
        headers += [(name.encode(), value.encode("latin-1")) for name, value in answer.headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})

    async def _answer(self, scope: Scope, incoming: IncomingBody, request_id: str) -> HookAnswer:
        method, path = scope["method"], scope["path"]
        if method not in METHODS:
            raise MethodNotAllowed(headers={"allow": ", ".join(METHODS)})
        hook = next(hook for hook in self._hooks if path.startswith(hook.prefix))
        target = None if hook.find_target is None else await hook.find_target(self._context, path)
        if target is None:
            raise NotFound
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
        call = HookCall(
            method=method,
            path=path,
            query=dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)),
            headers=headers,
            body=await incoming.read(target.max_bytes, HOOK_SECONDS, path, headers.get("content-length")),
            address=scope["client"][0] if scope.get("client") else "",
            request_id=request_id,
            account=target.account,
        )
        return await answer_hook(self._context, [hook], call)
