"""What people can do at the command line and in the console, programs can do with the API, or there is a reason."""

from sapa.console.pages import PARTS
from sapa.console.routes import console
from sapa.domains import ROUTES
from tests.house.public_names import list_commands
from tests.house.verbs import COMMANDS, FORMS, OnlyForPeople

assert PARTS
ENDPOINTS = {f"{one.method} {routes.base}{one.path}" for routes in ROUTES for one in routes.endpoints}


def test_every_command_has_its_endpoint_or_a_reason() -> None:
    assert sorted(list_commands()) == sorted(COMMANDS), "add it to COMMANDS of tests/house/verbs.py"


def test_every_form_of_the_console_has_its_endpoint_or_a_reason() -> None:
    forms = {page.path.removeprefix("/{environment}") for page in console.pages if page.method == "POST"}
    assert sorted(forms) == sorted(FORMS), "add it to FORMS of tests/house/verbs.py"


def test_the_endpoints_are_declared() -> None:
    named = {
        target for table in (COMMANDS, FORMS) for target in table.values() if not isinstance(target, OnlyForPeople)
    }
    assert named - ENDPOINTS == set()
