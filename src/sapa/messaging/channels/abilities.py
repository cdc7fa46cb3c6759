"""Optional abilities of channels: template review, token renewal, an own server, a web page."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from sapa.messaging.channels.interface import ChannelAccount, MediaType, OutgoingFile, SendRefusal


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


class ChannelTemplate(Struct, frozen=True):
    """A template as the channel stores it. `components` has the channel's format."""

    name: str
    language: str
    category: str
    status: str
    """APPROVED, PENDING, REJECTED, PAUSED, DISABLED or another status of the channel."""
    components: Sequence[Mapping[str, Any]]
    id: str | None = None
    reason: str | None = None


class NewTemplate(Struct, frozen=True):
    """A template to submit. The parameters in its body are numbered: {{1}}, {{2}} …"""

    name: str
    language: str
    category: str
    body: str
    examples: Sequence[str] = ()
    """An example value for each parameter; the channel requires them."""
    header: str | None = None
    footer: str | None = None
    buttons: Sequence[Mapping[str, Any]] = ()


@runtime_checkable
class TemplateStore(Protocol):
    """A channel that reviews templates.

    All methods raise NotSent or Unclear if the channel does not respond, and BadAccount if it does not know the
    account.
    """

    async def list_templates(self, connection: ChannelAccount) -> Sequence[ChannelTemplate]: ...

    async def submit_template(
        self, connection: ChannelAccount, template: NewTemplate
    ) -> ChannelTemplate | SendRefusal: ...

    async def delete_template(self, connection: ChannelAccount, name: str) -> SendRefusal | None:
        """Deletes all languages. A template that the channel does not have counts as deleted."""


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
