"""A forgotten password: a link by mail, and an answer that does not tell who is known here."""

from starlette.background import BackgroundTask
from starlette.responses import Response

from sapa.console.routes import PageRequest, console
from sapa.http.errors import Invalid
from sapa.people import mail

LONGEST_ADDRESS = 320


@console.get("/forgotten", roles=None)
async def show_forgotten(visit: PageRequest) -> Response:
    return _show(visit, asked=False)


@console.post("/forgotten", roles=None, shown_by=show_forgotten)
async def ask_for_a_link(visit: PageRequest) -> Response:
    """Whoever is looked up is looked up after the answer: it takes as long for everybody."""
    email = visit.given("email")
    if not mail.is_set_up(visit.context):
        return _show(visit, asked=False)
    if not 3 <= len(email) <= LONGEST_ADDRESS or "@" not in email or not email.isprintable():
        raise Invalid.field("email", "must be an e-mail address")
    await mail.count_reset_request(visit.context.database, email, visit.address)
    answer = _show(visit, asked=True)
    answer.background = BackgroundTask(mail.send_password_reset, visit.context, email)
    return answer


def _show(visit: PageRequest, asked: bool) -> Response:
    return visit.show("forgotten.html", by_mail=mail.is_set_up(visit.context), asked=asked, email=visit.given("email"))
