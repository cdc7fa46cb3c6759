"""Signing in and out, one-time links, and the language."""

from starlette.responses import Response

from sapa.console.page_request import THEME_COOKIE, THEMES, PageRequest
from sapa.console.roles import EVERYBODY
from sapa.console.routes import COOKIE, LANGUAGE_COOKIE, console, go_to, open_session, set_cookie
from sapa.console.translations import LANGUAGES
from sapa.http.errors import Invalid, NotFound
from sapa.people import actions as people
from sapa.people.types import OneTimeLink, Role

HOME = "/console"
"""Leads to the page that a person starts with."""
LINK_COOKIE = "sapa_link"
LINK_SECONDS = 3600


@console.get("", roles=EVERYBODY)
async def begin(page: PageRequest) -> Response:
    """Agents start in the inbox."""
    return go_to("/console/live/inbox" if page.session.role == Role.AGENT else "/console/live")


@console.get("/sign-in", roles=None)
async def show_sign_in(page: PageRequest) -> Response:
    if page.signed_in is not None:
        return go_to(HOME)
    expired = "expired" in page.request.query_params
    return page.show("sign_in.html", next=_next_of(page), email=page.form_value("email"), expired=expired)


@console.post("/sign-in", roles=None, shown_by=show_sign_in)
async def sign_in(page: PageRequest) -> Response:
    password = page.form.get("password")
    secret = await people.sign_in(
        page.context.database, page.form_value("email"), password if isinstance(password, str) else "", page.origin
    )
    return open_session(page, secret, _next_of(page))


@console.get("/link/{secret}", roles=None)
async def open_link(page: PageRequest) -> Response:
    """Moves the link's secret out of the address bar and the browser's history."""
    secret = page.request.path_params["secret"]
    await _get_link(page, secret)
    response = go_to("/console/link")
    set_cookie(page, response, LINK_COOKIE, secret, LINK_SECONDS)
    return response


@console.get("/link", roles=None)
async def show_link(page: PageRequest) -> Response:
    link = await _get_link(page, _read_link(page))
    return page.show("link.html", link=link, email=page.form_value("email"), name=page.form_value("name"))


@console.post("/link", roles=None, shown_by=show_link)
async def use_link(page: PageRequest) -> Response:
    secret, password = _read_link(page), str(page.form.get("password") or "")
    link = await _get_link(page, secret)
    if not link.asks_password and password != page.form.get("again"):
        raise Invalid.field("again", "is not the same password")
    newcomer = people.Newcomer(page.form_value("email"), page.form_value("name"), page.language)
    session = await people.use_link(page.context.database, secret, password, newcomer, page.origin)
    response = open_session(page, session, HOME)
    response.delete_cookie(LINK_COOKIE, path="/console")
    return response


def _read_link(page: PageRequest) -> str:
    return page.request.cookies.get(LINK_COOKIE, "")


async def _get_link(page: PageRequest, secret: str) -> OneTimeLink:
    async with page.context.database.connection() as db:
        return await people.get_link(db, secret)


@console.post("/language", roles=None)
async def choose_language(page: PageRequest) -> Response:
    language = page.form_value("language")
    response = go_to(_next_of(page))
    if language not in LANGUAGES:
        return response
    if page.signed_in is not None:
        async with page.context.database.transaction() as tx:
            await people.set_language(tx, page.signed_in.user_id, language)
    response.set_cookie(LANGUAGE_COOKIE, language, max_age=31_536_000, path="/console", samesite="lax")
    return response


@console.post("/theme", roles=None)
async def choose_theme(page: PageRequest) -> Response:
    response = go_to(_next_of(page))
    chosen = page.form_value("theme")
    response.set_cookie(
        THEME_COOKIE, chosen if chosen in THEMES else "", max_age=31_536_000, path="/console", samesite="lax"
    )
    return response


@console.get("/companies", roles=EVERYBODY)
async def list_companies(page: PageRequest) -> Response:
    async with page.context.database.connection() as db:
        places = await people.list_memberships(db, page.session.user_id)
    return page.show("companies.html", places=places)


@console.post("/companies", roles=EVERYBODY, shown_by=list_companies)
async def move(page: PageRequest) -> Response:
    company = page.form_value("company")
    if not company.isascii() or not company.isdigit() or len(company) > 18:
        raise NotFound
    async with page.context.database.transaction() as tx:
        secret = await people.switch_company(tx, page.session, page.secret, int(company), page.origin)
    return open_session(page, secret, HOME)


@console.post("/sign-out", roles=EVERYBODY)
async def sign_out(page: PageRequest) -> Response:
    async with page.context.database.transaction() as tx:
        if page.form_value("everywhere"):
            await people.sign_out_everywhere(tx, page.session.user_id)
        else:
            await people.sign_out(tx, page.secret)
    response = go_to("/console/sign-in")
    response.delete_cookie(COOKIE, path="/console")
    return response


def _next_of(page: PageRequest) -> str:
    """The return path, if it is a page of the console."""
    wanted = page.form_value("next") or page.request.query_params.get("next", "")
    return wanted if wanted.startswith("/console/") and "//" not in wanted and "\\" not in wanted else HOME
