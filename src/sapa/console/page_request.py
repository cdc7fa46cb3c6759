"""One request for a page: its session, environment and form, and what its response shows."""

from asyncio import Semaphore
from datetime import datetime
from hashlib import sha256
from secrets import token_hex
from typing import Any
from urllib.parse import quote, unquote

from markupsafe import Markup
from msgspec import Struct, field
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from sapa.console import translations
from sapa.console.execute import InProcessApi
from sapa.console.formats import DEFAULT_ZONE, Formats, get_zone
from sapa.console.forms import build_token
from sapa.console.live import Live
from sapa.console.menu import MenuCount
from sapa.console.rendering import render
from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http import idempotency
from sapa.http.allow_list import AllowList, read_client_address
from sapa.http.endpoints import Base
from sapa.http.errors import ApiError, Conflict, NotFound
from sapa.http.responses import HttpResponse
from sapa.http.uploads import FileStream
from sapa.people import actions as people
from sapa.people.types import ConsoleSession
from sapa.pictures.actions import PATH as PICTURES
from sapa.values.change_actor import ChangeActor
from sapa.values.company import Company
from sapa.values.json import encode
from sapa.webhooks.types import StoredEndpoint

THEME_COOKIE = "sapa_theme"
SAID_COOKIE = "sapa_said"
"""What a form did, for the page that it leads to."""
LIST_COOKIE = "sapa_list"
"""With the list's path: the filters with which it was last open."""
SAID_SECONDS = 60
MAX_COOKIE = 1_000
MAX_CALLS = 2
"""Of a page at a time: as many connections as an idle process keeps open."""
THEMES = ("light", "dark")


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
    counts: dict[str, MenuCount] = field(default_factory=dict)
    company: Company | None = None
    form: FormData = field(default_factory=FormData)
    error: ApiError | None = None
    form_page: str = ""
    """The page that a form's response belongs to: what a reload opens, so that nothing is sent twice."""
    cookies: dict[str, str | None] = field(default_factory=dict)
    """What the response sets; None for those that it removes."""
    calls: Semaphore = field(default_factory=lambda: Semaphore(MAX_CALLS))

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
    def form_fields(self) -> Markup:
        """The token, and after sign-in a key of this form: what is sent twice with it happens once."""
        fields = f'<input type="hidden" name="token" value="{self.token}">'
        if self.signed_in is not None:
            fields += f'<input type="hidden" name="once" value="{token_hex(16)}">'
        return Markup(fields)  # noqa: S704 - hexadecimal digits

    @property
    def address(self) -> str:
        return read_client_address(self.request, AllowList(self.context.settings.server.trusted_proxies))

    @property
    def origin(self) -> people.Origin:
        return people.Origin(self.address, self.request.headers.get("user-agent", ""), self.browser_key)

    @property
    def theme(self) -> str:
        """Empty for the system's."""
        chosen = self.request.cookies.get(THEME_COOKIE, "")
        return chosen if chosen in THEMES else ""

    @property
    def time_zone(self) -> str:
        """In which the reader reads and enters times: their own, or the company's."""
        if self.signed_in is not None and self.signed_in.time_zone is not None:
            return self.signed_in.time_zone
        return self.company.time_zone if self.company else DEFAULT_ZONE

    @property
    def formats(self) -> Formats:
        return Formats(self.language, self.time_zone, datetime.now(get_zone(self.time_zone)))

    @property
    def notice(self) -> str:
        return unquote(self.request.cookies.get(SAID_COOKIE, ""))

    def say(self, text: str, **values: object) -> None:
        """Shown on the page that the response leads to."""
        self.cookies[SAID_COOKIE] = quote(str(translations.translate(self.language, text, **values)))[:MAX_COOKIE]

    def back_to(self, list_path: str) -> str:
        """The path of a list, with the filters that it last had."""
        query = unquote(self.request.cookies.get(_name_list_cookie(list_path), ""))
        return self.path(f"{list_path}?{query}" if query else list_path)

    def keep_filters(self) -> None:
        """So that the pages of a list's items lead back to it as it was."""
        list_path, query = self.request.url.path.removeprefix(self.path()), quote(self.request.url.query)
        if self.request.method == "GET" and list_path.count("/") == 1:
            self.cookies[_name_list_cookie(list_path)] = query if len(query) <= MAX_COOKIE else ""

    def path(self, rest: str = "") -> str:
        """The path of a page in the present environment."""
        return f"/console/{self.environment}{rest}"

    def own_picture(self, url: str | None) -> str:
        """The path of a picture on this server, the only ones that pages may show; empty for others."""
        here = self.context.settings.server.address
        return url.removeprefix(here) if url and url.startswith(here + PICTURES) else ""

    def form_value(self, name: str) -> str:
        """A field of the form, stripped; empty if it is missing."""
        value = self.form.get(name)
        return value.strip() if isinstance(value, str) else ""

    def typed(self, name: str, stored: object = "") -> object:
        """A field of the form that was sent; what is stored if the form is another one."""
        return self.form_value(name) if name in self.form else stored

    def form_values(self, name: str) -> list[str]:
        return [value for value in self.form.getlist(name) if isinstance(value, str)]

    @property
    def is_secure(self) -> bool:
        return self.context.settings.server.address.startswith("https://")

    def show(self, template: str, http_status: int = 200, **context: Any) -> Response:
        shared = {"visit": self, "session": self.signed_in, "environment": self.environment, "error": self.error}
        if SAID_COOKIE in self.request.cookies:
            self.cookies.setdefault(SAID_COOKIE, None)
        return render(template, http_status, self.language, shared | context, self.formats)

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

        `noted` is the action and the subject for the audit log. A change that is sent twice with the same `once`
        happens once; by default it is the form's key and what the form sends, so that a reload changes nothing and
        another entry counts.
        """
        if once is None and method != "GET" and (form_key := self.form_value("once")):
            content = encode([path, body]) + (upload[1] if upload else b"")
            once = f"{form_key}-{sha256(content).hexdigest()[:16]}"
        session = self.session
        user = ChangeActor("user", str(session.user_id), session.email)
        audit = (lambda tx: self.record(tx, *noted)) if noted else None
        async with self.calls:
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


def _name_list_cookie(list_path: str) -> str:
    return f"{LIST_COOKIE}{list_path.replace('/', '_')}"
