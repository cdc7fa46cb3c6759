"""Settings: people, and the audit log."""

import re

from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.fields import show_at
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS, OWNERS
from sapa.console.routes import ENVIRONMENTS, console, go_to
from sapa.console.team_pages import show_team
from sapa.console.translations import build_translator
from sapa.db.pool import Tx
from sapa.http.errors import Invalid, NotFound
from sapa.messaging.consents.types import ALL_CHANNELS
from sapa.people import actions as people
from sapa.people import mail
from sapa.people.types import AuditEntry, Purpose, Role, UserExists
from sapa.support import members

_POINTS = re.compile(r"(?<=^[+−])\d+")


@console.get("/{environment}/people", roles=OWNERS)
async def list_people(page: PageRequest) -> Response:
    return await show_team(page)


@console.post("/{environment}/people", roles=OWNERS, shown_by=list_people)
async def invite(page: PageRequest) -> Response:
    role = _role(page.form_value("role"))
    async with page.context.database.transaction() as tx:
        with show_at("email", UserExists):
            secret = await people.invite(
                tx, page.session.organisation_id, page.form_value("email"), page.form_value("name"), role
            )
        await page.record(tx, "person.invited", page.form_value("email"))
        if role is Role.AGENT:
            await _activate_agents(page, tx)
    return await _deliver(page, Purpose.INVITATION, page.form_value("email"), page.form_value("name"), secret)


async def _activate_agents(page: PageRequest, tx: Tx) -> None:
    """Conversations can be assigned to an invited agent at once, in both environments."""
    member = await people.get_member_by_email(tx, page.session.organisation_id, page.form_value("email"))
    for environment in ENVIRONMENTS:
        company = await access.get_company(tx, page.session.company_id(environment))
        agent = await members.activate(tx, company, member.id, member.name)
        await _record(page, tx, environment, "agent.activated", agent.name)


async def _deactivate_agents(page: PageRequest, tx: Tx, user_id: int) -> None:
    """The conversations of somebody who leaves go back to the queue."""
    for environment in ENVIRONMENTS:
        company = await access.get_company(tx, page.session.company_id(environment))
        agent = await members.deactivate(tx, company, user_id)
        if agent is not None:
            await _record(page, tx, environment, "agent.deactivated", agent.name)


async def _record(page: PageRequest, tx: Tx, environment: str, action: str, subject: str) -> None:
    await people.record(tx, page.session, environment, action, subject, page.address)


@console.post("/{environment}/people/{id}/link", roles=OWNERS, shown_by=list_people)
async def make_link(page: PageRequest) -> Response:
    """For people who lost their invitation or password."""
    user_id = _user_id(page)
    async with page.context.database.transaction() as tx:
        member = await people.get_member(tx, page.session.organisation_id, user_id)
        purpose, secret = await people.renew_link(tx, page.session.organisation_id, user_id)
        await page.record(tx, "person.link", member.email)
    return await _deliver(page, purpose, member.email, member.name, secret)


@console.post("/{environment}/people/{id}/role", roles=OWNERS, shown_by=list_people, says="Role changed")
async def change_role(page: PageRequest) -> Response:
    async with page.context.database.transaction() as tx:
        member = await people.change_role(
            tx, page.session.organisation_id, _user_id(page), _role(page.form_value("role"))
        )
        await page.record(tx, "person.role", f"{member.email}: {member.role}")
    return go_to(page.path("/settings/team"))


@console.post("/{environment}/people/{id}/remove", roles=OWNERS, shown_by=list_people, says="Person removed")
async def remove(page: PageRequest) -> Response:
    user_id = _user_id(page)
    async with page.context.database.transaction() as tx:
        member = await people.get_member(tx, page.session.organisation_id, user_id)
        await people.remove(tx, page.session.organisation_id, user_id)
        await page.record(tx, "person.removed", member.email)
        await _deactivate_agents(page, tx, user_id)
    return go_to(page.path("/settings/team"))


@console.get("/{environment}/audit", roles=DEVELOPERS)
async def show_audit(page: PageRequest) -> Response:
    before = page.request.query_params.get("before", "")
    async with page.context.database.connection() as db:
        entries = await people.list_audit(
            db,
            page.session.organisation_id,
            int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None,
        )
    subjects = [_read_subject(page, entry) for entry in entries]
    return page.show(
        "audit.html",
        entries=list(zip(entries, subjects, strict=True)),
        more=entries[-1].id if len(entries) == people.AUDIT_PAGE else None,
    )


def _read_subject(page: PageRequest, entry: AuditEntry) -> tuple[str, str]:
    """The id of the customer that was changed, and the rest in the reader's words."""
    say = build_translator(page.language)
    match entry.action:
        case "settings.changed":
            return "", say(f"setting {entry.subject}")
        case "person.role":
            email, _, role = entry.subject.rpartition(": ")
            return "", f"{email}: {say(role)}"
        case "points.adjusted":
            id, _, change = entry.subject.partition(": ")
            return id, _POINTS.sub(lambda found: page.formats.number(int(found[0])), change)
        case "consent.recorded":
            id, app, status = entry.subject.split(" ")
            return id, f"{say('All channels') if app == ALL_CHANNELS else say(app)}: {say(status)}"
    return "", entry.subject


async def _deliver(page: PageRequest, purpose: Purpose, email: str, name: str, secret: str) -> Response:
    """By mail if it is set up; otherwise, or if that fails, the link is shown to pass on."""
    link = mail.build_link(page.context, secret)
    if not mail.is_set_up(page.context):
        return page.show("person_link.html", email=email, link=link, failure=None)
    letter = mail.OutgoingMail(email, name, page.session.organisation, purpose, link, page.language)
    try:
        await mail.send(page.context, letter)
    except mail.NotMailed as error:
        return page.show("person_link.html", email=email, link=link, failure=str(error))
    return page.show("person_mailed.html", email=email)


def _role(text: str) -> Role:
    if text not in list(Role):
        raise Invalid.field("role", f"must be one of {', '.join(Role)}")
    return Role(text)


def _user_id(page: PageRequest) -> int:
    text = page.request.path_params["id"]
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise NotFound
    return int(text)
