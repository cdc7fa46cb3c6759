"""Users of the console, their roles and sessions."""

from enum import StrEnum

from msgspec import Struct

from sapa.http.errors import ApiError, Conflict, Invalid, NotFound
from sapa.http.responses import Timestamp


class Role(StrEnum):
    """An owner may do everything, a developer everything except managing people, an agent only work with customers."""

    OWNER = "owner"
    DEVELOPER = "developer"
    AGENT = "agent"


class Purpose(StrEnum):
    SETUP = "setup"
    INVITATION = "invitation"
    RESET = "reset"


class Member(Struct, frozen=True, rename="camel"):
    """A user of a company."""

    id: int
    email: str
    name: str
    role: Role
    has_joined: bool
    created_at: Timestamp


class ConsoleSession(Struct, frozen=True):
    """A signed-in user and their current company."""

    user_id: int
    email: str
    name: str
    language: str
    role: Role
    organisation_id: int
    organisation: str
    live_company_id: int
    test_company_id: int

    def company_id(self, environment: str) -> int:
        return self.live_company_id if environment == "live" else self.test_company_id


class MailRecipient(Struct, frozen=True):
    """A user who gets mail, and the company that it names."""

    user_id: int
    email: str
    name: str
    language: str
    organisation_id: int
    organisation: str


class Membership(Struct, frozen=True):
    """A company that a user belongs to."""

    id: int
    name: str
    role: Role


class OneTimeLink(Struct, frozen=True):
    """A one-time link that still works."""

    purpose: Purpose
    organisation_id: int
    organisation: str
    user_id: int | None
    email: str | None
    name: str | None
    is_known: bool

    @property
    def asks_password(self) -> bool:
        """An invited user who has a password enters it. Only a reset link, which goes to the user alone, replaces the
        password: it is valid for all their companies."""
        return self.purpose == Purpose.INVITATION and self.is_known


class AuditEntry(Struct, frozen=True):
    """A change that a user made."""

    id: int
    environment: str | None
    user_name: str
    action: str
    subject: str
    address: str
    created_at: Timestamp


class WrongPassword(ApiError):
    """The e-mail address or the password is wrong."""

    status = 401
    code = "WRONG_PASSWORD"


class TooManyAttempts(ApiError):
    """Too many attempts; try again in 15 minutes, or reset your password."""

    status = 429
    code = "TOO_MANY_ATTEMPTS"


class SignInBusy(ApiError):
    """Too many people are signing in right now; try again in a few seconds."""

    status = 503
    code = "SIGN_IN_BUSY"


class LinkUsed(NotFound):
    """This link is invalid, expired or already used."""

    code = "LINK_USED"


class UserExists(Conflict):
    """This company already has a user with this e-mail address."""

    code = "USER_EXISTS"
    constraint = "memberships_pkey"


class BelongsElsewhere(Conflict):
    """This user also belongs to another company, so you cannot change their password. They can reset it themselves on
    the sign-in page, or the operator can create a link with `sapa user link`."""

    code = "BELONGS_ELSEWHERE"


class PasswordChanged(Conflict):
    """A password for this account was just set; open the link again."""

    code = "PASSWORD_CHANGED"


class LastOwner(Conflict):
    """A company needs an owner; make another user an owner first."""

    code = "LAST_OWNER"


class WeakPassword(Invalid):
    """Use a password of at least 12 characters that is not easy to guess."""
