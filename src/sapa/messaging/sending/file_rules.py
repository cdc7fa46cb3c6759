"""Whether a channel accepts the files of a message, and as which type of media. Pure."""

from posixpath import splitext
from urllib.parse import urlsplit

from msgspec.structs import replace

from sapa.http.errors import Invalid
from sapa.messaging.channels.files import FileRule
from sapa.messaging.channels.interface import Capabilities, Media, MediaType, Source
from sapa.messaging.files.types import MIB, StoredFile
from sapa.messaging.messages.types import ChannelUnsupported
from sapa.messaging.sending.types import MessageDraft, MessageFile, MessageLink

_PICTURES = {".gif": "image/gif", ".webp": "image/webp"}
"""The types of pictures that some channels do not accept, by the ends of their names."""


def fit_files(source: Source, capabilities: Capabilities, draft: MessageDraft) -> MessageDraft:
    """The draft as this channel sends it: what it does not accept as an image, it may accept as a document."""
    if draft.kind not in capabilities.sends:
        return draft
    if draft.files and isinstance(draft.content, Media):
        draft = _fit_message(source, capabilities, draft, draft.content)
    elif draft.template is not None and not capabilities.needs_approved_templates:
        return draft  # a link in the template's text
    for each in draft.files:
        _check_file(source, capabilities, each)
    for link in draft.links:
        _check_link(source, capabilities, link)
    return draft


def _fit_message(source: Source, capabilities: Capabilities, draft: MessageDraft, content: Media) -> MessageDraft:
    if len(draft.files) > capabilities.max_files:
        many = "one file" if capabilities.max_files == 1 else f"{capabilities.max_files} files"
        raise ChannelUnsupported(f"{source} takes {many} in a message. Send the others with further messages.")
    if draft.has_media_type:
        return draft
    fitted = [replace(each, type=choose_type(capabilities, each.type, each.file)) for each in draft.files]
    type = fitted[0].type
    return replace(draft, files=fitted, type=type, content=replace(content, type=type))


def choose_type(capabilities: Capabilities, usual: MediaType, file: StoredFile) -> MediaType:
    """The usual type, or document if only that is accepted."""
    if is_accepted(capabilities.files.get(usual), file):
        return usual
    return "document" if is_accepted(capabilities.files.get("document"), file) else usual


def is_accepted(rule: FileRule | None, file: StoredFile) -> bool:
    if rule is None or file.size > rule.max_bytes:
        return False
    return rule.media_types is None or file.media_type in rule.media_types


def _check_file(source: Source, capabilities: Capabilities, sent: MessageFile) -> None:
    """A type that the channel has no rule for is refused by the check of the content."""
    file, rule = sent.file, capabilities.files.get(sent.type)
    if rule is None or is_accepted(rule, file):
        return
    raise Invalid.field(
        sent.field,
        f"is {file.media_type} of {file.size:,} bytes, which {source} does not accept as {sent.type}. "
        f"It accepts {describe_rules(capabilities)}",
    )


def _check_link(source: Source, capabilities: Capabilities, sent: MessageLink) -> None:
    """Only pictures, by their names: the channel fetches the file itself, and would refuse it later."""
    media_type, rule = _PICTURES.get(splitext(urlsplit(sent.url).path)[1].lower()), capabilities.files.get(sent.type)
    if sent.type != "image" or media_type is None or rule is None or rule.media_types is None:
        return
    if media_type not in rule.media_types:
        raise Invalid.field(
            sent.field,
            f"is {media_type} by its name, which {source} does not accept as {sent.type}. "
            f"It accepts {describe_rules(capabilities)}",
        )


def describe_rules(capabilities: Capabilities) -> str:
    return "; ".join(
        f"{type} up to {rule.max_bytes // MIB} MB{_list_types(rule)}" for type, rule in capabilities.files.items()
    )


def _list_types(rule: FileRule) -> str:
    return f" ({', '.join(sorted(rule.media_types))})" if rule.media_types else ""
