"""Declares the console's pages: path, roles, and a handler that shows or changes something.

Every page passes the same steps: session, role, environment, and for changes the form's token. Errors are shown on the
page.
"""

import hmac
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import asyncpg
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from sapa.console import translations
from sapa.console.execute import InProcessApi
from sapa.console.forms import (
    MAX_BYTES,
    MAX_BYTES_WITH_FILE,
    MAX_FIELDS,
    MAX_OPEN_BYTES,
    MAX_OPEN_FIELDS,
    FormBody,
    comes_from_here,
    read_form,
)
from sapa.console.live import Live
from sapa.console.menu import MenuCounts
from sapa.console.page_request import SAID_COOKIE, SAID_SECONDS, PageRequest
from sapa.console.rendering import HEADERS, protect
from sapa.console.roles import DEVELOPERS
from sapa.context import AppContext
from sapa.http.errors import (
    ApiError,
    InternalError,
    MethodNotAllowed,
    NotFound,
    explain,
    translate,
)
from sapa.people import actions as people
from sapa.people.profile import actions as profile
from sapa.people.types import Role
from sapa.values.sealing import SecretKeyMissing

COOKIE = "sapa_session"
VISITOR_COOKIE = "sapa_visitor"
"""For visitors who are not signed in: the seed of their forms' tokens."""
BROWSER_COOKIE = "sapa_browser"
"""Tells a browser in which a person has signed in from one of a stranger."""
LANGUAGE_COOKIE = "sapa_language"
ENVIRONMENTS = ("live", "test")
LIVE = "live"
"""The part of a page that its script fetches when something has changed."""
MARK_SECONDS = 60.0
MAX_MARKED = 10_000
PARAMETER, PAGES = "/{}", "/"
"""Names in the tree of paths that no step can have."""
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


class Forbidden(ApiError):
    """Your role in this company does not allow this page; ask an owner."""

    status = 403
    code = "FORBIDDEN"
    fix = "Ask an owner of the company for another role."


class PageFailed(InternalError):
    """Something failed on the server; see its log for details."""


class StaleForm(ApiError):
    """This form has expired, or came from another site; open the page again and repeat it."""

    status = 403
    code = "STALE_FORM"
    fix = "Open the page again and repeat the entry."


Handler = Callable[[PageRequest], Awaitable[Response]]


class ConsoleRoute(Struct, frozen=True):
    """One declared page."""

    method: str
    path: str
    roles: Sequence[Role] | None
    """None for pages that are open to anybody."""
    handler: Handler
    shown_by: Handler | None
    """Shows the form again, with its errors."""
    has_file: bool = False
    says: str = ""
    """What a form did, for the page that it leads to."""
    is_background: bool = False
    """Fetched by scripts on their own: nobody needs to be there."""

    @property
    def is_open(self) -> bool:
        return self.roles is None


class ConsoleRoutes:
    """The console's pages."""

    def __init__(self) -> None:
        self.pages: list[ConsoleRoute] = []

    def get(self, path: str, roles: Sequence[Role] | None, is_background: bool = False) -> Callable[[Handler], Handler]:
        return self._declare("GET", path, roles, None, False, is_background=is_background)

    def post(
        self,
        path: str,
        roles: Sequence[Role] | None,
        shown_by: Handler | None = None,
        has_file: bool = False,
        says: str = "",
    ) -> Callable[[Handler], Handler]:
        return self._declare("POST", path, roles, shown_by, has_file, says)

    def routes(self, context: AppContext, api: InProcessApi, live: Live) -> list[Route]:
        """One for all pages: a tree finds a page sooner than a list of two hundred patterns."""
        counts, tree = MenuCounts(api), PathTree(self.pages)

        async def serve(request: Request) -> Response:
            steps = request.scope["path"].removeprefix("/console").split("/")
            method = "GET" if request.method == "HEAD" else request.method
            if (found := tree.find(steps, method)) is not None:
                route, request.scope["path_params"] = found
            else:
                is_page = any(tree.find(steps, other) for other in ("GET", "POST"))
                route = ConsoleRoute("GET", "", None, _refuse_method if is_page else _refuse_unknown, None)
            return await _serve(context, api, live, counts, route, request)

        return [Route(path, serve, methods=METHODS) for path in ("/console", "/console/{rest:path}")]

    def _declare(
        self,
        method: str,
        path: str,
        roles: Sequence[Role] | None,
        shown_by: Handler | None,
        has_file: bool,
        says: str = "",
        is_background: bool = False,
    ) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            self.pages.append(ConsoleRoute(method, path, roles, handler, shown_by, has_file, says, is_background))
            return handler

        return declare


console = ConsoleRoutes()


class PathTree:
    """Paths as a tree of their steps. A fixed step is preferred to a parameter: `new` is not an id, and `people` not an
    environment."""

    def __init__(self, pages: Sequence[ConsoleRoute]) -> None:
        self._root: dict[str, Any] = {}
        for route in pages:
            node = self._root
            for step in route.path.split("/"):
                node = node.setdefault(PARAMETER if step.startswith("{") else step, {})
            names = [step[1:-1] for step in route.path.split("/") if step.startswith("{")]
            node.setdefault(PAGES, {})[route.method] = (route, names)

    def find(self, steps: Sequence[str], method: str) -> tuple[ConsoleRoute, dict[str, str]] | None:
        """The page and its parameters."""
        found = _find_page(self._root, steps, method)
        if found is None:
            return None
        (route, names), values = found
        return route, dict(zip(names, values, strict=True))


def _find_page(node: Mapping[str, Any], steps: Sequence[str], method: str) -> tuple[Any, list[str]] | None:
    if not steps:
        page = node.get(PAGES, {}).get(method)
        return None if page is None else (page, [])
    step, *rest = steps
    if (child := node.get(step)) is not None and (found := _find_page(child, rest, method)) is not None:
        return found
    if not step or "\0" in step:  # which the database cannot compare with
        return None
    if (child := node.get(PARAMETER)) is not None and (found := _find_page(child, rest, method)) is not None:
        return found[0], [step, *found[1]]
    return None


async def _serve(
    context: AppContext, api: InProcessApi, live: Live, counts: MenuCounts, route: ConsoleRoute, incoming: Request
) -> Response:
    secret = incoming.cookies.get(COOKIE, "")
    body = FormBody(incoming.receive, _get_limit(context, route), secret, context.large_bodies)
    request = Request(incoming.scope, body.receive)
    visitor = request.cookies.get(VISITOR_COOKIE) or token_urlsafe(32)
    browser_key = request.cookies.get(BROWSER_COOKIE) or token_urlsafe(32)
    language = translations.choose(request)
    page = PageRequest(context, api, live, request, secret, visitor, browser_key, None, None, language)
    try:
        response = await _respond(context, counts, route, page)
    finally:
        body.release()
    if page.signed_in is None and VISITOR_COOKIE not in request.cookies:
        set_cookie(page, response, VISITOR_COOKIE, visitor)
    for name, value in page.cookies.items():
        seconds = SAID_SECONDS if name == SAID_COOKIE else None
        set_cookie(page, response, name, value or "", 0 if value is None else seconds)
    return protect(response, page.is_secure)


def _get_limit(context: AppContext, route: ConsoleRoute) -> int:
    if route.is_open:
        return MAX_OPEN_BYTES
    if not route.has_file:
        return MAX_BYTES
    return max(MAX_BYTES_WITH_FILE, context.settings.files.max_bytes + MAX_OPEN_BYTES)


async def _respond(context: AppContext, counts: MenuCounts, route: ConsoleRoute, page: PageRequest) -> Response:
    try:
        await _admit(context, counts, route, page)
        if route.method == "POST":
            page.form_page = _name_form_page(route, page)
            await _read_form(route, page)
        return await _run(route, page)
    except _SignInFirst:
        has_ended = page.secret or route.method == "POST"
        return go_to(
            f"/console/sign-in?next={quote(_read_return_path(page.request))}{'&expired=1' if has_ended else ''}"
        )
    except Exception as error:
        # Not the address: it may be a one-time link.
        refusal = explain(error, page.request.state.request_id, page=f"{route.method} {route.path}")
        if isinstance(refusal, InternalError):
            refusal = PageFailed()
        response = page.show("refused.html", refusal.status, error=refusal, title=_name_refusal(refusal))
        response.headers.update(refusal.headers)
        return response


def _name_refusal(refusal: ApiError) -> str:
    if isinstance(refusal, StaleForm):
        return "This page expired"
    return {403: "No access", 404: "Not found"}.get(refusal.status, "Something went wrong")


def _read_return_path(request: Request) -> str:
    """The requested page, whole if a script asked for a part of it; for a form, the page it is on."""
    try:
        place = urlsplit(str(request.url) if request.method == "GET" else request.headers.get("referer", ""))
    except ValueError:
        return ""
    query = urlencode([(name, value) for name, value in parse_qsl(place.query) if name != "part"])
    return f"{place.path}?{query}" if query else place.path


async def _refuse_method(page: PageRequest) -> Response:
    raise MethodNotAllowed("This page does not support this method.")


async def _refuse_unknown(page: PageRequest) -> Response:
    if not page.request.path_params.get("rest"):
        return go_to("/console")
    raise NotFound


class _SignInFirst(Exception):
    pass


class SeenSessions:
    """When each session was last marked as seen by this process: once a minute is enough."""

    def __init__(self) -> None:
        self._marked: dict[str, float] = {}

    async def mark(self, context: AppContext, secret: str) -> None:
        now = time.monotonic()
        if now - self._marked.get(secret, -MARK_SECONDS) < MARK_SECONDS:
            return
        if len(self._marked) > MAX_MARKED:
            self._marked.clear()
        self._marked[secret] = now
        async with context.database.connection() as db:
            await profile.mark_seen(db, secret)


_SEEN = SeenSessions()


async def _admit(context: AppContext, counts: MenuCounts, route: ConsoleRoute, page: PageRequest) -> None:
    if page.secret:
        async with context.database.connection() as db:
            page.signed_in = await people.find_session(db, page.secret)
    if page.signed_in is not None:
        if not (route.is_background or page.request.query_params.get("part") == LIVE):
            await _SEEN.mark(context, page.secret)
        page.language = page.signed_in.language
        page.environment = _find_environment(page.request)
        page.company = await page.api.get_company(page.company_id)
    if route.roles is None:
        return
    if page.signed_in is None:
        raise _SignInFirst
    if page.environment is None and "environment" in page.request.path_params:
        raise NotFound
    if page.signed_in.role not in route.roles:
        raise Forbidden
    if page.environment is not None:
        page.counts = await counts.read(page.company_id)
    if page.environment is not None and page.signed_in.role in DEVELOPERS:
        page.suspended = await counts.list_suspended(context.database, page.company_id)


def _find_environment(request: Request) -> str | None:
    """Also of an address that is no page, so that its error is shown in the environment that it is about."""
    named = request.path_params.get("environment") or request.path_params.get("rest", "").partition("/")[0]
    return named if named in ENVIRONMENTS else None


async def _read_form(route: ConsoleRoute, page: PageRequest) -> None:
    page.form = await read_form(page.request, route.has_file, MAX_OPEN_FIELDS if route.is_open else MAX_FIELDS)
    if not hmac.compare_digest(page.form_value("token").encode(), page.token.encode()):
        raise StaleForm
    if route.is_open and not comes_from_here(page.request):
        raise StaleForm


async def _run(route: ConsoleRoute, page: PageRequest) -> Response:
    try:
        response = await _handle(route, page)
        if route.says and response.status_code == 303 and SAID_COOKIE not in page.cookies:
            page.say(route.says)
        return response
    except ApiError as error:
        if route.shown_by is None:
            raise
        page.error = error
        response = await route.shown_by(page)
        response.status_code = error.status
        return response


def _name_form_page(route: ConsoleRoute, page: PageRequest) -> str:
    """The page that shows the form, as it was sent from there if it was, else the one that it was sent from."""
    sent_from = _read_return_path(page.request)
    for shown in console.pages:
        if shown.method == "GET" and shown.handler is route.shown_by:
            path = "/console" + shown.path.format(**page.request.path_params)
            return sent_from if urlsplit(sent_from).path == path else path
    return sent_from if sent_from.startswith("/console/") else ""


async def _handle(route: ConsoleRoute, page: PageRequest) -> Response:
    try:
        return await route.handler(page)
    except (asyncpg.IntegrityConstraintViolationError, SecretKeyMissing) as error:
        raise translate(error) or error from None


def open_session(page: PageRequest, secret: str, path: str) -> Response:
    """Signs in and redirects."""
    response = go_to(path)
    set_cookie(page, response, COOKIE, secret, people.SESSION_SECONDS)
    set_cookie(page, response, BROWSER_COOKIE, page.browser_key, people.BROWSER_SECONDS)
    return response


def set_cookie(page: PageRequest, response: Response, name: str, value: str, seconds: int | None = None) -> None:
    """Scripts cannot read it and other sites cannot send it; without `seconds` it ends with the browser session."""
    response.set_cookie(
        name, value, max_age=seconds, path="/console", secure=page.is_secure, httponly=True, samesite="lax"
    )


def go_to(path: str) -> Response:
    return RedirectResponse(path, 303, HEADERS)
