"""The stream of a company's events, for `sapa listen`."""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.http.errors import Invalid, MethodNotAllowed
from sapa.http.event_stream import EventStreamResponse
from sapa.webhooks.listen.streams import Listeners


def listen_route(listeners: Listeners) -> Route:
    async def listen(request: Request) -> Response:
        """A company's events as they happen, for `sapa listen`."""
        if request.method != "GET":
            raise MethodNotAllowed(headers={"allow": "GET"})
        last_id = request.headers.get("last-event-id")
        stream = await listeners.open(_get_token(request), _get_kinds(request), last_id)
        release = partial(listeners.close, stream)
        return EventStreamResponse(listeners.run(stream), release, {"cache-control": "no-store"})

    return Route("/listen", listen)


def _get_token(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else ""


def _get_kinds(request: Request) -> list[str]:
    if unknown := set(request.query_params) - {"kinds"}:
        raise Invalid.field(min(unknown), "is not a parameter of this call; use kinds")
    return [kind for part in request.query_params.getlist("kinds") for kind in part.split(",") if kind]
