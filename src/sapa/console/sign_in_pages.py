"""Coming in and going out: signing in, one-time links, language, signing out."""

from starlette.responses import Response

from sapa.console.routes import (
    COOKIE,
    EVERYBODY,
    LANGUAGE_COOKIE,
    PageRequest,
    console,
    go_to,
    open_session,
    set_cookie,
)
from sapa.console.translations import LANGUAGES
from sapa.http.errors import Invalid, NotFound
from sapa.people import actions as people
from sapa.people.types import OneTimeLink

HOME = "/console/live"
LINK_COOKIE = "sapa_link"
LINK_SECONDS = 3600


@console.get("", roles=EVERYBODY)
async def begin(visit: PageRequest) -> Response:
    return go_to(HOME)


@console.get("/sign-in", roles=None)
async def show_sign_in(visit: PageRequest) -> Response:
    if visit.known is not None:
        return go_to(HOME)
    return visit.show("sign_in.html", next=_next_of(visit), email=visit.given("email"))


@console.post("/sign-in", roles=None, shown_by=show_sign_in)
async def sign_in(visit: PageRequest) -> Response:
    password = visit.form.get("password")
    secret = await people.sign_in(
        visit.context.database, visit.given("email"), password if isinstance(password, str) else "", visit.origin
    )
    return open_session(visit, secret, _next_of(visit))


@console.get("/link/{secret}", roles=None)
async def open_link(visit: PageRequest) -> Response:
    """What opens the door leaves the address bar, and the browser's history with it."""
    secret = visit.request.path_params["secret"]
    await _get_link(visit, secret)
    answer = go_to("/console/link")
    set_cookie(visit, answer, LINK_COOKIE, secret, LINK_SECONDS)
    return answer


@console.get("/link", roles=None)
async def show_link(visit: PageRequest) -> Response:
    link = await _get_link(visit, _read_link(visit))
    return visit.show("link.html", link=link, email=visit.given("email"), name=visit.given("name"))


@console.post("/link", roles=None, shown_by=show_link)
async def use_link(visit: PageRequest) -> Response:
    secret, password = _read_link(visit), str(visit.form.get("password") or "")
    link = await _get_link(visit, secret)
    if not link.asks_password and password != visit.form.get("again"):
        raise Invalid.field("again", "is not the same password")
    newcomer = people.Newcomer(visit.given("email"), visit.given("name"), visit.language)
    session = await people.use_link(visit.context.database, secret, password, newcomer, visit.origin)
    answer = open_session(visit, session, HOME)
    answer.delete_cookie(LINK_COOKIE, path="/console")
    return answer


def _read_link(visit: PageRequest) -> str:
    return visit.request.cookies.get(LINK_COOKIE, "")


async def _get_link(visit: PageRequest, secret: str) -> OneTimeLink:
    async with visit.context.database.connection() as db:
        return await people.get_link(db, secret)


@console.post("/language", roles=None)
async def choose_language(visit: PageRequest) -> Response:
    language = visit.given("language")
    answer = go_to(_next_of(visit))
    if language not in LANGUAGES:
        return answer
    if visit.known is not None:
        async with visit.context.database.transaction() as tx:
            await people.set_language(tx, visit.known.user_id, language)
    answer.set_cookie(LANGUAGE_COOKIE, language, max_age=31_536_000, path="/console", samesite="lax")
    return answer


@console.get("/companies", roles=EVERYBODY)
async def list_companies(visit: PageRequest) -> Response:
    async with visit.context.database.connection() as db:
        places = await people.list_memberships(db, visit.session.user_id)
    return visit.show("companies.html", places=places)


@console.post("/companies", roles=EVERYBODY, shown_by=list_companies)
async def move(visit: PageRequest) -> Response:
    company = visit.given("company")
    if not company.isascii() or not company.isdigit() or len(company) > 18:
        raise NotFound
    async with visit.context.database.transaction() as tx:
        secret = await people.switch_company(tx, visit.session, visit.secret, int(company), visit.origin)
    return open_session(visit, secret, HOME)


@console.post("/sign-out", roles=EVERYBODY)
async def sign_out(visit: PageRequest) -> Response:
    async with visit.context.database.transaction() as tx:
        if visit.given("everywhere"):
            await people.sign_out_everywhere(tx, visit.session.user_id)
        else:
            await people.sign_out(tx, visit.secret)
    answer = go_to("/console/sign-in")
    answer.delete_cookie(COOKIE, path="/console")
    return answer


def _next_of(visit: PageRequest) -> str:
    """Where they wanted to go: a page of ours, and nothing else."""
    wanted = visit.given("next") or visit.request.query_params.get("next", "")
    return wanted if wanted.startswith("/console/") and "//" not in wanted and "\\" not in wanted else HOME
