"""A file goes out as a type that the channel accepts, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.http.errors import Invalid
from sapa.messaging.channels.interface import MEDIA_TYPES, Media, MediaType, Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.files.file_types import get_family
from sapa.messaging.files.types import FILE_ID, StoredFile
from sapa.messaging.sending.file_rules import describe_rules, fit_files, is_accepted
from sapa.messaging.sending.types import MessageDraft, MessageFile
from tests.messaging.files.corpus import ALL

MB = 1_048_576
SIZES = [size * MB + more for size in (0, 3, 5, 8, 16, 25, 100) for more in (0, 1)]


def build_file(media_type: str, size: int) -> StoredFile:
    return StoredFile(FILE_ID.example, "a", media_type, size, 1, "database", "stored", None, "none")


@given(
    source=st.sampled_from(Source),
    media_type=st.sampled_from(sorted({file.media_type for file in ALL})),
    size=st.sampled_from(SIZES),
    wanted=st.sampled_from([None, *MEDIA_TYPES]),
)
def test_what_is_sent_is_accepted_and_what_is_accepted_is_sent(
    source: Source, media_type: str, size: int, wanted: MediaType | None
) -> None:
    file, capabilities = build_file(media_type, size), CHANNELS[source].capabilities
    type = wanted or get_family(media_type)
    content = Media(type, "")
    files = [MessageFile(file, type, "attachmentId")]
    draft = MessageDraft(kind="media", content=content, type=type, body=None, files=files, has_media_type=bool(wanted))
    choices = [type] if wanted else [type, "document"]
    acceptable = [choice for choice in choices if is_accepted(capabilities.files.get(choice), file)]
    if type in capabilities.files and not acceptable:
        with pytest.raises(Invalid) as refused:
            fit_files(source, capabilities, draft)
        assert describe_rules(capabilities) in str(refused.value.details)
        return
    fitted = fit_files(source, capabilities, draft)
    assert fitted.type == getattr(fitted.content, "type", None)
    # A type that the channel has no rule for is refused by the check of the content.
    assert fitted.type == acceptable[0] if acceptable else fitted.type not in capabilities.files
