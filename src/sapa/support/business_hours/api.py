"""Endpoints for business hours."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.support.business_hours import actions
from sapa.support.business_hours.types import BusinessHours, BusinessHoursIn

routes = Routes("/business-hours", base=Base.MESSAGING, tag="Inbox", resource="business_hours")


@routes.get("", scope=Scope.MESSAGES_READ)
async def get_business_hours(call: Call) -> BusinessHours:
    """Get the company's business hours and holidays."""
    return await actions.get_hours(call.db, call.company)


@routes.put("", scope=Scope.MESSAGES_WRITE)
async def update_business_hours(call: Call, body: BusinessHoursIn) -> BusinessHours:
    """Replace the company's business hours and holidays.

    Targets of tickets are counted by the new hours from their next change on.
    """
    return await actions.update(call.db, call.company, body)
