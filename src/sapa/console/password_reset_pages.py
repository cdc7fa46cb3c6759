"""Forgotten password: a link by mail, and a response that does not reveal who has an account."""

from starlette.background import BackgroundTask
from starlette.responses import Response

from sapa.console.page_request import PageRequest
from sapa.console.routes import console
from sapa.http.errors import Invalid
from sapa.people import mail

LONGEST_ADDRESS = 320


@console.get("/forgotten", roles=None)
async def show_reset_form(page: PageRequest) -> Response:
    return _show(page, asked=False)


@console.post("/forgotten", roles=None, shown_by=show_reset_form)
async def ask_for_a_link(page: PageRequest) -> Response:
    """The account is looked up after the response, so that the time reveals nothing."""
    email = page.form_value("email")
    if not mail.is_set_up(page.context):
        return _show(page, asked=False)
    if not 3 <= len(email) <= LONGEST_ADDRESS or "@" not in email or not email.isprintable():
        raise Invalid.field("email", "must be an e-mail address")
    await mail.count_reset_request(page.context.database, email, page.address)
    response = _show(page, asked=True)
    response.background = BackgroundTask(mail.send_password_reset, page.context, email)
    return response


def _show(page: PageRequest, asked: bool) -> Response:
    return page.show(
        "forgotten.html", by_mail=mail.is_set_up(page.context), asked=asked, email=page.form_value("email")
    )
