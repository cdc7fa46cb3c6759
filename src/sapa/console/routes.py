"""Pages of the console are declared once: path, who may open it, and a function that shows it or does it.

Every page passes the same steps: session, role, environment, and for what changes something the form's token. What is
refused is shown where it happened.
"""

import hmac
from collections.abc import Awaitable, Callable, Sequence
from secrets import token_urlsafe
from typing import Any
from urllib.parse import quote, urlsplit

import asyncpg
import structlog
from msgspec import Struct, field
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route

from sapa.console import translations
from sapa.console.execute import Asker
from sapa.console.forms import build_token, comes_from_here, limit_body, read_form
from sapa.console.live import Live
from sapa.console.rendering import HEADERS, protect, render
from sapa.context import AppContext, SecretKeyMissing
from sapa.db.connection import DatabaseAway
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
    ServiceUnavailable,
    translate,
)
from sapa.http.responses import HttpResponse
from sapa.people import actions as people
from sapa.people.types import ConsoleSession, Role

COOKIE = "sapa_session"
VISITOR_COOKIE = "sapa_visitor"
"""Of somebody who is not signed in: what the tokens of their forms are made of."""
LANGUAGE_COOKIE = "sapa_language"
ENVIRONMENTS = ("live", "test")
EVERYBODY = tuple(Role)
DEVELOPERS = (Role.OWNER, Role.DEVELOPER)
OWNERS = (Role.OWNER,)
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

log = structlog.get_logger()


class Forbidden(ApiError):
    """Your role in this company does not open this page; ask an owner."""

    status = 403
    code = "FORBIDDEN"


class PageFailed(InternalError):
    """Something failed on our side; the log of the server says what."""


class StaleForm(ApiError):
    """This form is too old, or came from elsewhere; open the page again and repeat it."""

    status = 403
    code = "STALE_FORM"


class FormSent(Conflict):
    """This form was sent before; what it made is shown once, and is there already."""

    code = "FORM_SENT"


class PageRequest(Struct):
    """One request for a page, and who makes it."""

    kit: AppContext
    asker: Asker
    live: Live
    request: Request
    secret: str
    visitor: str
    known: ConsoleSession | None
    environment: str | None
    language: str
    form: FormData = field(default_factory=FormData)
    error: ApiError | None = None

    @property
    def session(self) -> ConsoleSession:
        if self.known is None:
            raise NotFound
        return self.known

    @property
    def company_id(self) -> int:
        return self.session.company_id(self.environment or "live")

    @property
    def token(self) -> str:
        """What a form must bring back: known to whoever can read this browser's pages, and to nobody else."""
        return build_token(self.visitor if self.known is None else self.secret)

    @property
    def address(self) -> str:
        peer = self.request.client.host if self.request.client else ""
        trusted = AllowList(self.kit.settings.server.trusted_proxies)
        return client_address(peer, self.request.headers.get("x-forwarded-for"), trusted)

    @property
    def origin(self) -> people.Origin:
        return people.Origin(self.address, self.request.headers.get("user-agent", ""))

    def path(self, rest: str = "") -> str:
        """A page of the present environment."""
        return f"/console/{self.environment}{rest}"

    def given(self, name: str) -> str:
        """A field of the form, without blanks around it; empty when it is missing."""
        value = self.form.get(name)
        return value.strip() if isinstance(value, str) else ""

    def all_given(self, name: str) -> list[str]:
        return [value for value in self.form.getlist(name) if isinstance(value, str)]

    @property
    def is_secure(self) -> bool:
        return self.kit.settings.server.address.startswith("https://")

    def show(self, template: str, http_status: int = 200, **context: Any) -> Response:
        known = {"visit": self, "session": self.known, "environment": self.environment, "error": self.error}
        return render(template, http_status, self.language, known | context)

    async def ask(
        self,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        body: object = None,
        base: Base = Base.CUSTOMER,
        upload: tuple[str, bytes] | None = None,
        noted: tuple[str, str] | None = None,
        once: str | None = None,
    ) -> Any:
        """What the API answers, for this environment and with the rights of this person's role. `noted` is what the
        audit log is to say of a change: the action and its subject. `once` is the form's own word: sent twice with
        it, a change happens once."""
        role = self.session.role
        note = (lambda tx: self.record(tx, *noted)) if noted else None
        return await self.asker.ask(self.company_id, role, method, path, query, body, base, upload, note, once)

    async def take_once(self, tx: Tx) -> None:
        """For forms that make a secret: one that is sent again, by a reload, makes no other."""
        if not (word := self.given("once")):
            return
        attempt = idempotency.build_claim(self.company_id, f"console-{word}", self.request.url.path, b"")
        if await idempotency.claim(tx, attempt):
            raise FormSent
        await idempotency.settle(tx, attempt, HttpResponse(200, b"", {}))

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
    """Shows the form again, with what was wrong in it."""

    @property
    def is_open(self) -> bool:
        return self.roles is None


class ConsoleRoutes:
    """The console's pages."""

    def __init__(self) -> None:
        self.sheets: list[ConsoleRoute] = []

    def get(self, path: str, roles: Sequence[Role] | None) -> Callable[[Handler], Handler]:
        return self._declare("GET", path, roles, None)

    def post(
        self, path: str, roles: Sequence[Role] | None, shown_by: Handler | None = None
    ) -> Callable[[Handler], Handler]:
        return self._declare("POST", path, roles, shown_by)

    def routes(self, context: AppContext, asker: Asker, live: Live) -> list[Route]:
        """What is named before what is meant by any name: `new` is no id, and `people` no environment."""
        ordered = sorted(self.sheets, key=lambda sheet: [step.startswith("{") for step in sheet.path.split("/")])
        routes = [
            Route(f"/console{sheet.path}", _serve(context, asker, live, sheet), methods=[sheet.method])
            for sheet in ordered
        ]
        nowhere = ConsoleRoute("GET", "/{rest:path}", None, _refuse_others(routes), None)
        return [*routes, Route(f"/console{nowhere.path}", _serve(context, asker, live, nowhere), methods=METHODS)]

    def _declare(
        self, method: str, path: str, roles: Sequence[Role] | None, shown_by: Handler | None
    ) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            self.sheets.append(ConsoleRoute(method, path, roles, handler, shown_by))
            return handler

        return declare


console = ConsoleRoutes()


def _serve(
    context: AppContext, asker: Asker, live: Live, sheet: ConsoleRoute
) -> Callable[[Request], Awaitable[Response]]:
    async def serve(asked: Request) -> Response:
        request = Request(asked.scope, limit_body(asked.receive, sheet.is_open))
        secret, visitor = request.cookies.get(COOKIE, ""), request.cookies.get(VISITOR_COOKIE) or token_urlsafe(32)
        visit = PageRequest(context, asker, live, request, secret, visitor, None, None, translations.choose(request))
        answer = await _answer(context, sheet, visit)
        if visit.known is None and VISITOR_COOKIE not in request.cookies:
            set_cookie(visit, answer, VISITOR_COOKIE, visitor)
        return protect(answer, visit.is_secure)

    return serve


async def _answer(context: AppContext, sheet: ConsoleRoute, visit: PageRequest) -> Response:
    try:
        await _admit(context, sheet, visit)
        if sheet.method == "POST":
            await _take_form(sheet, visit)
        return await _run(sheet, visit)
    except _SignInFirst:
        return go_to(f"/console/sign-in?next={quote(_find_way_back(visit.request))}")
    except ApiError as error:
        answer = visit.show("refused.html", error.status, error=error)
        answer.headers.update(error.headers)
        return answer
    except DatabaseAway:
        return visit.show("refused.html", 503, error=ServiceUnavailable())
    except Exception:
        # Not the address: it may be a one-time link's.
        page = f"{sheet.method} {sheet.path}"
        log.exception("page failed", page=page, request_id=visit.request.state.request_id)
        return visit.show("refused.html", 500, error=PageFailed())


def _find_way_back(request: Request) -> str:
    """The page that they wanted; of a form, the page that it stood on."""
    try:
        place = urlsplit(str(request.url) if request.method == "GET" else request.headers.get("referer", ""))
    except ValueError:
        return ""
    return f"{place.path}?{place.query}" if place.query else place.path


def _refuse_others(routes: Sequence[Route]) -> Handler:
    async def refuse(visit: PageRequest) -> Response:
        if not visit.request.path_params["rest"]:
            return go_to("/console")
        if any(route.matches(visit.request.scope)[0] is Match.PARTIAL for route in routes):
            raise MethodNotAllowed("This page does not take that.")
        raise NotFound

    return refuse


class _SignInFirst(Exception):
    pass


async def _admit(context: AppContext, sheet: ConsoleRoute, visit: PageRequest) -> None:
    if visit.secret:
        async with context.database.connection() as db:
            visit.known = await people.find_session(db, visit.secret)
    if visit.known is not None:
        visit.language = visit.known.language
    if sheet.roles is None:
        return
    if visit.known is None:
        raise _SignInFirst
    environment = visit.request.path_params.get("environment")
    if environment is not None and environment not in ENVIRONMENTS:
        raise NotFound
    visit.environment = environment
    if visit.known.role not in sheet.roles:
        raise Forbidden


async def _take_form(sheet: ConsoleRoute, visit: PageRequest) -> None:
    visit.form = await read_form(visit.request, sheet.is_open)
    if not hmac.compare_digest(visit.given("token").encode(), visit.token.encode()):
        raise StaleForm
    if sheet.is_open and not comes_from_here(visit.request):
        raise StaleForm


async def _run(sheet: ConsoleRoute, visit: PageRequest) -> Response:
    try:
        return await _handle(sheet, visit)
    except ApiError as error:
        if sheet.shown_by is None:
            raise
        visit.error = error
        shown = await sheet.shown_by(visit)
        shown.status_code = error.status
        return shown


async def _handle(sheet: ConsoleRoute, visit: PageRequest) -> Response:
    try:
        return await sheet.handler(visit)
    except (asyncpg.IntegrityConstraintViolationError, SecretKeyMissing) as error:
        raise translate(error) or error from None


def open_session(visit: PageRequest, secret: str, path: str) -> Response:
    """On to a page, signed in."""
    answer = go_to(path)
    set_cookie(visit, answer, COOKIE, secret, people.SESSION_SECONDS)
    return answer


def set_cookie(visit: PageRequest, answer: Response, name: str, value: str, seconds: int | None = None) -> None:
    """One that no script reads and no other site sends; without a time it goes with the browser."""
    answer.set_cookie(
        name, value, max_age=seconds, path="/console", secure=visit.is_secure, httponly=True, samesite="lax"
    )


def go_to(path: str) -> Response:
    return RedirectResponse(path, 303, HEADERS)
