"""Settings: people and the log of what they changed."""

from starlette.responses import Response

from sapa.console.routes import (
    DEVELOPERS,
    EVERYBODY,
    OWNERS,
    PageRequest,
    console,
    go_to,
)
from sapa.http.errors import Invalid, NotFound
from sapa.people import actions as people
from sapa.people import mail
from sapa.people.types import Purpose, Role


@console.get("/{environment}", roles=EVERYBODY)
async def show_home(visit: PageRequest) -> Response:
    return visit.show("home.html")


@console.get("/{environment}/people", roles=OWNERS)
async def list_people(visit: PageRequest) -> Response:
    async with visit.context.database.connection() as db:
        members = await people.list_members(db, visit.session.organisation_id)
    return visit.show("people.html", members=members, roles=list(Role), link=None,
                      given={name: visit.given(name) for name in ("email", "name", "role")})  # fmt: skip


@console.post("/{environment}/people", roles=OWNERS, shown_by=list_people)
async def invite(visit: PageRequest) -> Response:
    role = _role(visit.given("role"))
    async with visit.context.database.transaction() as tx:
        secret = await people.invite(tx, visit.session.organisation_id, visit.given("email"), visit.given("name"), role)
        await visit.record(tx, "person.invited", visit.given("email"))
    return await _deliver(visit, Purpose.INVITATION, visit.given("email"), visit.given("name"), secret)


@console.post("/{environment}/people/{id}/link", roles=OWNERS, shown_by=list_people)
async def make_link(visit: PageRequest) -> Response:
    """For somebody who lost the invitation or the password."""
    user_id = _user_id(visit)
    async with visit.context.database.transaction() as tx:
        member = await people.get_member(tx, visit.session.organisation_id, user_id)
        purpose, secret = await people.renew_link(tx, visit.session.organisation_id, user_id)
        await visit.record(tx, "person.link", member.email)
    return await _deliver(visit, purpose, member.email, member.name, secret)


@console.post("/{environment}/people/{id}/role", roles=OWNERS, shown_by=list_people)
async def change_role(visit: PageRequest) -> Response:
    async with visit.context.database.transaction() as tx:
        member = await people.change_role(
            tx, visit.session.organisation_id, _user_id(visit), _role(visit.given("role"))
        )
        await visit.record(tx, "person.role", f"{member.email}: {member.role}")
    return go_to(visit.path("/people"))


@console.post("/{environment}/people/{id}/remove", roles=OWNERS, shown_by=list_people)
async def remove(visit: PageRequest) -> Response:
    user_id = _user_id(visit)
    async with visit.context.database.transaction() as tx:
        member = await people.get_member(tx, visit.session.organisation_id, user_id)
        await people.remove(tx, visit.session.organisation_id, user_id)
        await visit.record(tx, "person.removed", member.email)
    return go_to(visit.path("/people"))


@console.get("/{environment}/audit", roles=DEVELOPERS)
async def show_audit(visit: PageRequest) -> Response:
    before = visit.request.query_params.get("before", "")
    async with visit.context.database.connection() as db:
        entries = await people.list_audit(
            db,
            visit.session.organisation_id,
            int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None,
        )
    return visit.show("audit.html", entries=entries, more=entries[-1].id if len(entries) == people.AUDIT_PAGE else None)


async def _deliver(visit: PageRequest, purpose: Purpose, email: str, name: str, secret: str) -> Response:
    """By mail where the operator has set it up; otherwise, and where that fails, the link is shown to be passed on."""
    link = mail.build_link(visit.context, secret)
    if not mail.is_set_up(visit.context):
        return visit.show("person_link.html", email=email, link=link, failure=None)
    letter = mail.OutgoingMail(email, name, visit.session.organisation, purpose, link, visit.language)
    try:
        await mail.send(visit.context, letter)
    except mail.NotMailed as error:
        return visit.show("person_link.html", email=email, link=link, failure=str(error))
    return visit.show("person_mailed.html", email=email)


def _role(text: str) -> Role:
    if text not in list(Role):
        raise Invalid.field("role", f"must be one of {', '.join(Role)}")
    return Role(text)


def _user_id(visit: PageRequest) -> int:
    text = visit.request.path_params["id"]
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise NotFound
    return int(text)
