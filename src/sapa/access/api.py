"""How a company's settings are reached."""

from sapa.access import actions
from sapa.access.types import CompanySettings, CompanySettingsPatch, Scope
from sapa.http.endpoints import OR, Base, Call, Routes
from sapa.http.errors import InsufficientScope

routes = Routes(
    "/company",
    base=Base.CUSTOMER,
    tag="Company",
    about="The time zone, language, currency and country of your company.",
)

WRITES = (Scope.CUSTOMERS_WRITE, Scope.ORDERS_WRITE, Scope.PRODUCTS_WRITE)
"""All of them are needed: the settings decide how phone numbers, orders and prices are read."""
ANY_READ = OR.join([Scope.CUSTOMERS_READ, Scope.ORDERS_READ, Scope.PRODUCTS_READ, Scope.MESSAGES_READ])


@routes.get("", scope=ANY_READ)
async def get_company(call: Call) -> CompanySettings:
    """Get the company of the key and its settings."""
    return await actions.get_settings(call.db, call.company.id)


@routes.put("", scope=Scope.CUSTOMERS_WRITE)
async def update_company(call: Call, body: CompanySettingsPatch) -> CompanySettings:
    """Change the company's settings in the key's environment.

    A field that you leave out keeps its value. The live and the test environment have settings of their own. The key
    needs the WRITE scopes of customers, orders and products.
    """
    for scope in WRITES:
        if scope not in call.key.scopes:
            raise InsufficientScope(f"The API key lacks the scope {scope}.")
    return await actions.change_settings(call.db, call.company.id, body)
