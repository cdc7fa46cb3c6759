"""Declares the console's pages: path, roles, and a handler that shows or changes something.

Every page passes the same steps: session, role, environment, and for changes the form's token. Errors are shown on the
page.
"""

import hmac
from collections.abc import Awaitable, Callable, Sequence
from secrets import token_urlsafe
from typing import Any
from urllib.parse import quote, urlsplit

import asyncpg
from msgspec import Struct, field
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route

from sapa.console import translations
from sapa.console.execute import InProcessApi
from sapa.console.forms import (
    MOST_BYTES,
    MOST_BYTES_WITH_FILE,
    MOST_OPEN_BYTES,
    FormBody,
    build_token,
    comes_from_here,
    read_form,
)
from sapa.console.live import Live
from sapa.console.rendering import HEADERS, protect, render
from sapa.context import AppContext, SecretKeyMissing
from sapa.db.pool import Tx
from sapa.http import idempotency
from sapa.http.allow_list import AllowList, client_address
from sapa.http.endpoints import Base
from sapa.http.errors import (
    ApiError,
    Conflict,
    InternalError,
    MethodNotAllowed,
    NotFound,
    explain,
    translate,
)
from sapa.http.responses import HttpResponse
from sapa.http.uploads import FileStream
from sapa.people import actions as people
from sapa.people.types import ConsoleSession, Role
from sapa.values.change_actor import ChangeActor
from sapa.webhooks.endpoints import actions as webhooks
from sapa.webhooks.types import StoredEndpoint

COOKIE = "sapa_session"
VISITOR_COOKIE = "sapa_visitor"
"""For visitors who are not signed in: the seed of their forms' tokens."""
BROWSER_COOKIE = "sapa_browser"
"""Tells a browser in which a person has signed in from one of a stranger."""
LANGUAGE_COOKIE = "sapa_language"
ENVIRONMENTS = ("live", "test")
EVERYBODY = tuple(Role)
DEVELOPERS = (Role.OWNER, Role.DEVELOPER)
OWNERS = (Role.OWNER,)
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


class FormSent(Conflict):
    """This form was already sent; its result is shown only once."""

    code = "FORM_SENT"
    fix = "Open the page again. If you did not copy what was shown, create another one and delete the first."


class PageRequest(Struct):
    """One request for a page, and its session."""

    context: AppContext
    api: InProcessApi
    live: Live
    request: Request
    secret: str
    visitor: str
    browser_key: str
    signed_in: ConsoleSession | None
    environment: str | None
    language: str
    suspended: list[StoredEndpoint] = field(default_factory=list)
    """Suspended webhook endpoints of the environment, for those who may resume them."""
    form: FormData = field(default_factory=FormData)
    error: ApiError | None = None

    @property
    def session(self) -> ConsoleSession:
        if self.signed_in is None:
            raise NotFound
        return self.signed_in

    @property
    def company_id(self) -> int:
        return self.session.company_id(self.environment or "live")

    @property
    def token(self) -> str:
        """What a form must send back: readable by this browser's pages only."""
        return build_token(self.visitor if self.signed_in is None else self.secret)

    @property
    def address(self) -> str:
        peer = self.request.client.host if self.request.client else ""
        trusted = AllowList(self.context.settings.server.trusted_proxies)
        return client_address(peer, self.request.headers.get("x-forwarded-for"), trusted)

    @property
    def origin(self) -> people.Origin:
        return people.Origin(self.address, self.request.headers.get("user-agent", ""), self.browser_key)

    def path(self, rest: str = "") -> str:
        """The path of a page in the present environment."""
        return f"/console/{self.environment}{rest}"

    def form_value(self, name: str) -> str:
        """A field of the form, stripped; empty if it is missing."""
        value = self.form.get(name)
        return value.strip() if isinstance(value, str) else ""

    def form_values(self, name: str) -> list[str]:
        return [value for value in self.form.getlist(name) if isinstance(value, str)]

    @property
    def is_secure(self) -> bool:
        return self.context.settings.server.address.startswith("https://")

    def show(self, template: str, http_status: int = 200, **context: Any) -> Response:
        shared = {"visit": self, "session": self.signed_in, "environment": self.environment, "error": self.error}
        return render(template, http_status, self.language, shared | context)

    async def call(
        self,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        body: object = None,
        base: Base = Base.CUSTOMER,
        upload: tuple[str, bytes] | None = None,
        noted: tuple[str, str] | None = None,
        once: str | None = None,
        file: FileStream | None = None,
    ) -> Any:
        """Calls the API in this environment, with the scopes of the person's role.

        `noted` is the action and the subject for the audit log. `once` is the form's key: a change that is sent twice
        with it happens once.
        """
        session = self.session
        user = ChangeActor("user", str(session.user_id), session.email)
        audit = (lambda tx: self.record(tx, *noted)) if noted else None
        return await self.api.call(
            self.company_id, session.role, method, path, query, body, base, upload, audit, once, user, file
        )

    async def claim_once(self, tx: Tx) -> None:
        """For forms that create a secret: a reload does not create another."""
        if not (form_key := self.form_value("once")):
            return
        claim = idempotency.build_claim(self.company_id, f"console-{form_key}", self.request.url.path, b"")
        if await idempotency.acquire(tx, claim):
            raise FormSent
        await idempotency.settle(tx, claim, HttpResponse(200, b"", {}))

    async def record(self, tx: Tx, action: str, subject: str) -> None:
        await people.record(tx, self.session, self.environment, action, subject, self.address)


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

    @property
    def is_open(self) -> bool:
        return self.roles is None


class ConsoleRoutes:
    """The console's pages."""

    def __init__(self) -> None:
        self.pages: list[ConsoleRoute] = []

    def get(self, path: str, roles: Sequence[Role] | None) -> Callable[[Handler], Handler]:
        return self._declare("GET", path, roles, None, False)

    def post(
        self, path: str, roles: Sequence[Role] | None, shown_by: Handler | None = None, has_file: bool = False
    ) -> Callable[[Handler], Handler]:
        return self._declare("POST", path, roles, shown_by, has_file)

    def routes(self, context: AppContext, api: InProcessApi, live: Live) -> list[Route]:
        """Fixed paths before parameters: `new` is not an id, and `people` not an environment."""
        ordered = sorted(self.pages, key=lambda route: [step.startswith("{") for step in route.path.split("/")])
        routes = [
            Route(f"/console{route.path}", _serve(context, api, live, route), methods=[route.method])
            for route in ordered
        ]
        fallback = ConsoleRoute("GET", "/{rest:path}", None, _refuse_unmatched(routes), None)
        return [*routes, Route(f"/console{fallback.path}", _serve(context, api, live, fallback), methods=METHODS)]

    def _declare(
        self, method: str, path: str, roles: Sequence[Role] | None, shown_by: Handler | None, has_file: bool
    ) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            self.pages.append(ConsoleRoute(method, path, roles, handler, shown_by, has_file))
            return handler

        return declare


console = ConsoleRoutes()


def _serve(
    context: AppContext, api: InProcessApi, live: Live, route: ConsoleRoute
) -> Callable[[Request], Awaitable[Response]]:
    async def serve(incoming: Request) -> Response:
        secret = incoming.cookies.get(COOKIE, "")
        body = FormBody(incoming.receive, _get_limit(context, route), secret, context.large_bodies)
        request = Request(incoming.scope, body.receive)
        visitor = request.cookies.get(VISITOR_COOKIE) or token_urlsafe(32)
        browser_key = request.cookies.get(BROWSER_COOKIE) or token_urlsafe(32)
        language = translations.choose(request)
        page = PageRequest(context, api, live, request, secret, visitor, browser_key, None, None, language)
        try:
            response = await _respond(context, route, page)
        finally:
            body.release()
        if page.signed_in is None and VISITOR_COOKIE not in request.cookies:
            set_cookie(page, response, VISITOR_COOKIE, visitor)
        return protect(response, page.is_secure)

    return serve


def _get_limit(context: AppContext, route: ConsoleRoute) -> int:
    if route.is_open:
        return MOST_OPEN_BYTES
    if not route.has_file:
        return MOST_BYTES
    return max(MOST_BYTES_WITH_FILE, context.settings.files.most_bytes + MOST_OPEN_BYTES)


async def _respond(context: AppContext, route: ConsoleRoute, page: PageRequest) -> Response:
    try:
        await _admit(context, route, page)
        if route.method == "POST":
            await _read_form(route, page)
        return await _run(route, page)
    except _SignInFirst:
        return go_to(f"/console/sign-in?next={quote(_read_return_path(page.request))}")
    except Exception as error:
        # Not the address: it may be a one-time link.
        refusal = explain(error, page.request.state.request_id, page=f"{route.method} {route.path}")
        if isinstance(refusal, InternalError):
            refusal = PageFailed()
        response = page.show("refused.html", refusal.status, error=refusal)
        response.headers.update(refusal.headers)
        return response


def _read_return_path(request: Request) -> str:
    """The requested page; for a form, the page it is on."""
    try:
        place = urlsplit(str(request.url) if request.method == "GET" else request.headers.get("referer", ""))
    except ValueError:
        return ""
    return f"{place.path}?{place.query}" if place.query else place.path


def _refuse_unmatched(routes: Sequence[Route]) -> Handler:
    async def refuse(page: PageRequest) -> Response:
        if not page.request.path_params["rest"]:
            return go_to("/console")
        if any(route.matches(page.request.scope)[0] is Match.PARTIAL for route in routes):
            raise MethodNotAllowed("This page does not support this method.")
        raise NotFound

    return refuse


class _SignInFirst(Exception):
    pass


async def _admit(context: AppContext, route: ConsoleRoute, page: PageRequest) -> None:
    if page.secret:
        async with context.database.connection() as db:
            page.signed_in = await people.find_session(db, page.secret)
    if page.signed_in is not None:
        page.language = page.signed_in.language
    if route.roles is None:
        return
    if page.signed_in is None:
        raise _SignInFirst
    environment = page.request.path_params.get("environment")
    if environment is not None and environment not in ENVIRONMENTS:
        raise NotFound
    page.environment = environment
    if page.signed_in.role not in route.roles:
        raise Forbidden
    if environment is not None and page.signed_in.role in DEVELOPERS:
        async with context.database.connection() as db:
            page.suspended = await webhooks.list_suspended(db, page.company_id)


async def _read_form(route: ConsoleRoute, page: PageRequest) -> None:
    page.form = await read_form(page.request, route.has_file)
    if not hmac.compare_digest(page.form_value("token").encode(), page.token.encode()):
        raise StaleForm
    if route.is_open and not comes_from_here(page.request):
        raise StaleForm


async def _run(route: ConsoleRoute, page: PageRequest) -> Response:
    try:
        return await _handle(route, page)
    except ApiError as error:
        if route.shown_by is None:
            raise
        page.error = error
        response = await route.shown_by(page)
        response.status_code = error.status
        return response


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
