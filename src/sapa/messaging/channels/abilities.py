"""What some channels offer beside `Channel`: templates of their own, tokens that are renewed, a server or a page."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from sapa.messaging.channels.interface import ChannelAccount, SendRefusal


@runtime_checkable
class OwnServer(Protocol):
    """What a channel offers beside `Channel` when each account names its own server."""

    def find_server(self, account: Mapping[str, str]) -> str:
        """Its host and port."""


@runtime_checkable
class Embeddable(Protocol):
    """What a channel offers beside `Channel` when it is put into a company's web pages."""

    def build_snippet(self, address: str, key: str) -> str:
        """The address is this installation's, the key the chat's public one."""


class ChannelTemplate(Struct, frozen=True):
    """A template as the channel keeps it. `components` are in the channel's own words."""

    name: str
    language: str
    category: str
    status: str
    """APPROVED, PENDING, REJECTED, PAUSED, DISABLED or another word of the channel."""
    components: Sequence[Mapping[str, Any]]
    id: str | None = None
    reason: str | None = None


class NewTemplate(Struct, frozen=True):
    """A template to be put before the channel. The body counts its parameters: {{1}}, {{2}} …"""

    name: str
    language: str
    category: str
    body: str
    examples: Sequence[str] = ()
    """A value for each parameter; the channel wants to see them filled in."""
    header: str | None = None
    footer: str | None = None
    buttons: Sequence[Mapping[str, Any]] = ()


@runtime_checkable
class TemplateStore(Protocol):
    """What a channel offers beside `Channel` when it approves templates itself.

    All raise NotSent or Unclear when it does not answer, BadAccount when it does not know the account.
    """

    async def list_templates(self, connection: ChannelAccount) -> Sequence[ChannelTemplate]: ...

    async def submit_template(
        self, connection: ChannelAccount, template: NewTemplate
    ) -> ChannelTemplate | SendRefusal: ...

    async def delete_template(self, connection: ChannelAccount, name: str) -> SendRefusal | None:
        """In all languages. One that the channel does not have is deleted already."""


class Renewal(Struct, frozen=True):
    """Credentials that take the place of others before those end."""

    credentials: Mapping[str, str]
    seconds: float
    """How long they are good for."""


@runtime_checkable
class Renewable(Protocol):
    """What a channel offers beside `Channel` when its tokens end by themselves."""

    async def renew(self, connection: ChannelAccount) -> Renewal:
        """Raises BadAccount when the account has to be connected anew."""
