"""A person's own page: name, time zone, currency, password, sessions, and what they want to hear of."""

from starlette.responses import Response

from sapa.console.browser_names import name_browser
from sapa.console.page_request import PageRequest
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console, go_to, open_session
from sapa.console.settings_pages import CURRENCIES
from sapa.http.errors import Invalid
from sapa.people import actions as people
from sapa.people import mail
from sapa.people.profile import actions as profile
from sapa.people.profile.types import KINDS, AlertSettings
from sapa.people.types import WrongPassword

HOME = "/console/profile"


@console.get("/profile", roles=EVERYBODY)
async def show_profile(page: PageRequest) -> Response:
    session = page.session
    async with page.context.database.connection() as db:
        sessions = await profile.list_sessions(db, session.user_id)
        alerts = await profile.get_alerts(db, session.organisation_id, session.user_id)
    return page.show(
        "profile.html",
        sessions=[(one.hash.hex(), one, name_browser(one.browser)) for one in sessions],
        own=profile.hash_secret(page.secret).hex(),
        alerts=alerts,
        kinds=KINDS,
        has_mail=mail.is_set_up(page.context),
        name=page.form_value("name") or session.name,
        time_zone=page.form_value("timeZone") or session.time_zone or "",
        currencies=CURRENCIES,
        currency=page.form_value("currency") or session.currency or "",
    )


@console.post("/profile", roles=EVERYBODY, shown_by=show_profile, says="Saved")
async def change_profile(page: PageRequest) -> Response:
    typed = [page.form_value(name) for name in ("name", "timeZone", "currency")]
    async with page.context.database.transaction() as tx:
        await profile.change(tx, page.session.user_id, *typed)
    return go_to(HOME)


@console.post("/profile/password", roles=EVERYBODY, shown_by=show_profile)
async def change_password(page: PageRequest) -> Response:
    """Signs out everywhere else."""
    present, chosen = (str(page.form.get(name) or "") for name in ("present", "password"))
    if chosen != page.form.get("again"):
        raise Invalid.field("again", "is not the same password")
    try:
        secret = await people.change_password(page.context.database, page.session, present, chosen, page.origin)
    except WrongPassword:
        raise Invalid.field("present", "is not your current password") from None
    page.say("Password changed. Other browsers are signed out.")
    return open_session(page, secret, HOME)


@console.post("/profile/alerts", roles=EVERYBODY, shown_by=show_profile, says="Saved")
async def change_alerts(page: PageRequest) -> Response:
    alerts = AlertSettings(
        kinds=tuple(page.form_values("kind")),
        sound=bool(page.form_value("sound")),
        desktop=bool(page.form_value("desktop")),
        mail=bool(page.form_value("mail")),
    )
    async with page.context.database.transaction() as tx:
        await profile.save_alerts(tx, page.session.organisation_id, page.session.user_id, alerts)
    return go_to(f"{HOME}#alerts")


@console.post("/profile/sessions/end", roles=EVERYBODY, shown_by=show_profile, says="Signed out there")
async def end_session(page: PageRequest) -> Response:
    async with page.context.database.transaction() as tx:
        await profile.end_session(tx, page.session.user_id, page.form_value("session"))
    return go_to(HOME)
