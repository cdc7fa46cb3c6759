"""Optional abilities of channels: template review, reactions, read marks, uploads, ratings of accounts, token renewal,
an own server, a web page."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from sapa.messaging.channels.account_reports import AccountReport
from sapa.messaging.channels.files import OutgoingFile
from sapa.messaging.channels.interface import ChannelAccount, Identity, MediaType, SendRefusal
from sapa.messaging.channels.template_content import TemplateContent


@runtime_checkable
class OwnServer(Protocol):
    """A channel whose accounts name their own server."""

    def get_server(self, account: Mapping[str, str]) -> str:
        """The host and port."""


@runtime_checkable
class Embeddable(Protocol):
    """A channel that is embedded in a company's web pages."""

    def build_snippet(self, address: str, key: str) -> str:
        """`address` is this installation's, `key` the chat's public key."""


class ChannelTemplate(Struct, frozen=True, kw_only=True):
    """A template as the channel stores it."""

    name: str
    language: str
    status: str
    """APPROVED, PENDING, REJECTED, PAUSED, DISABLED or another status of the channel."""
    content: TemplateContent
    problem: str | None = None
    """Why it cannot be sent, whatever its status is."""
    id: str | None = None
    reason: str | None = None
    quality: str | None = None


class NewTemplate(Struct, frozen=True):
    """A template to submit."""

    name: str
    language: str
    content: TemplateContent


@runtime_checkable
class TemplateStore(Protocol):
    """A channel that reviews templates.

    All methods raise NotSent or Unclear if the channel does not respond, and BadAccount if it does not know the
    account.
    """

    template_owner_field: str
    """The account's field that identifies the owner of the templates."""

    async def list_templates(self, connection: ChannelAccount) -> Sequence[ChannelTemplate]: ...

    async def submit_template(
        self, connection: ChannelAccount, template: NewTemplate
    ) -> ChannelTemplate | SendRefusal: ...

    async def edit_template(
        self, connection: ChannelAccount, id: str, template: NewTemplate
    ) -> ChannelTemplate | SendRefusal:
        """Replaces the content; the channel reviews it again."""

    async def delete_template(self, connection: ChannelAccount, name: str, id: str | None) -> SendRefusal | None:
        """Deletes one language by its id, or all without one. A template that the channel does not have counts as
        deleted."""


@runtime_checkable
class Reactions(Protocol):
    """A channel on which a company can react to a message."""

    async def react(
        self, connection: ChannelAccount, to: Identity, message_id: str, emoji: str | None
    ) -> SendRefusal | None:
        """Without an emoji the reaction is removed. Raises NotSent or Unclear."""


@runtime_checkable
class ReadMarks(Protocol):
    """A channel on which customers see that their message was read, and that somebody is typing."""

    async def mark_read(
        self, connection: ChannelAccount, to: Identity, message_id: str, is_typing: bool
    ) -> SendRefusal | None:
        """Raises NotSent or Unclear."""


@runtime_checkable
class TypingIndicators(Protocol):
    """A channel on which customers see that somebody is typing, whatever they wrote before."""

    async def show_typing(self, connection: ChannelAccount, to: Identity) -> None: ...


@runtime_checkable
class FileUploads(Protocol):
    """A channel that accepts uploaded files, and gives each an id for messages."""

    upload_seconds: float
    """How long such an id is valid."""

    async def upload_file(
        self, connection: ChannelAccount, type: MediaType, file: OutgoingFile
    ) -> str | SendRefusal | None:
        """The channel's id of the file; None if this account cannot upload files, and has to send links. Raises NotSent
        if the outcome is unknown, too: an upload alone has no effect, so it can be repeated."""


@runtime_checkable
class AccountRatings(Protocol):
    """A channel that rates and limits its accounts."""

    async def read_rating(self, connection: ChannelAccount) -> AccountReport:
        """Raises NotSent, Unclear or BadAccount."""


class Renewal(Struct, frozen=True):
    """Credentials that replace others before those expire."""

    credentials: Mapping[str, str]
    seconds: float
    """How long they are valid."""


@runtime_checkable
class Renewable(Protocol):
    """A channel whose tokens expire."""

    async def renew(self, connection: ChannelAccount) -> Renewal:
        """Raises BadAccount if the account has to be connected again."""
