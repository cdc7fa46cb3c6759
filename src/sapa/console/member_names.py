"""The names of a company's people. Changes are recorded under their id and email address."""

from sapa.console.page_request import PageRequest
from sapa.people import actions as people


async def read_member_names(page: PageRequest) -> dict[str, str]:
    """By id and by email address."""
    async with page.context.database.connection() as db:
        members = await people.list_members(db, page.session.organisation_id)
    return {key: member.name for member in members for key in (str(member.id), member.email)}
