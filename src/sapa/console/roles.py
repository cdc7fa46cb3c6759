"""Who may open a page."""

from sapa.people.types import Role

EVERYBODY = tuple(Role)
DEVELOPERS = (Role.OWNER, Role.DEVELOPER)
OWNERS = (Role.OWNER,)
