"""Users of the console, their roles and sessions."""

from enum import StrEnum

from msgspec import Struct

from sapa.http.errors import ApiError, Conflict, Invalid, NotFound
from sapa.http.responses import Timestamp
from sapa.values.company import Company


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
    time_zone: str | None
    """None for the company's."""
    currency: str | None
    """In which they read sales; None for the company's."""
    role: Role
    organisation_id: int
    organisation: str
    live_company_id: int
    test_company_id: int

    def company_id(self, environment: str) -> int:
        return self.live_company_id if environment == "live" else self.test_company_id

    def currency_of_sales(self, company: Company) -> str:
        return self.currency or company.currency


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
    """A change that a user made in the console, or a program with an API key."""

    id: int
    environment: str | None
    user_name: str
    """The user's name, or the key's."""
    key_id: str | None
    """Of a change by program."""
    action: str
    subject: str
    address: str
    created_at: Timestamp


class WrongPassword(ApiError):
    """The e-mail address or the password is wrong."""

    status = 401
    code = "WRONG_PASSWORD"
    fix = "Check both, or reset the password on the sign-in page."


class TooManyAttempts(ApiError):
    """Too many attempts; try again in 15 minutes, or reset your password."""

    status = 429
    code = "TOO_MANY_ATTEMPTS"
    fix = "Wait for 15 minutes, or reset the password."


class SignInBusy(ApiError):
    """Too many people are signing in right now; try again in a few seconds."""

    status = 503
    code = "SIGN_IN_BUSY"
    fix = "Try again in a few seconds."


class LinkUsed(NotFound):
    """This link is invalid, expired or already used."""

    code = "LINK_USED"
    fix = "Ask for a new link."


class UserExists(Conflict):
    """This company already has a user with this e-mail address."""

    code = "USER_EXISTS"
    constraint = "memberships_pkey"
    fix = "Change the role of the user who has this address."


class BelongsElsewhere(Conflict):
    """This user also belongs to another company, so you cannot change their password. They can reset it themselves on
    the sign-in page, or the operator can create a link with `sapa user link`."""

    code = "BELONGS_ELSEWHERE"
    fix = "Let the user reset the password on the sign-in page."


class PasswordChanged(Conflict):
    """A password for this account was just set; open the link again."""

    code = "PASSWORD_CHANGED"
    fix = "Open the link again."


class LastOwner(Conflict):
    """A company needs an owner; make another user an owner first."""

    code = "LAST_OWNER"
    fix = "Make another user an owner, then try again."


class WeakPassword(Invalid):
    """Use a password of at least 12 characters that is not easy to guess."""
