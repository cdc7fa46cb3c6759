"""Files for the Cloud API: which it accepts, and how they are uploaded."""

from collections.abc import Mapping

from sapa.messaging.channels import meta
from sapa.messaging.channels.files import FileRule, OutgoingFile
from sapa.messaging.channels.interface import ChannelAccount, MediaType, SendRefusal
from sapa.messaging.channels.whatsapp.errors import classify
from sapa.outbound.client import AttachedFile, Form

MB = 1_048_576
UPLOAD_SECONDS = 29 * 86_400.0
"""An id is valid for 30 days."""

IMAGES = frozenset({"image/jpeg", "image/png"})
VIDEOS = frozenset({"video/mp4", "video/3gpp"})
AUDIO = frozenset({"audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"})
OFFICE = "application/vnd.openxmlformats-officedocument."
DOCUMENTS = frozenset(
    {
        "application/pdf", "text/plain", "application/msword", "application/vnd.ms-excel",
        "application/vnd.ms-powerpoint", f"{OFFICE}wordprocessingml.document", f"{OFFICE}spreadsheetml.sheet",
        f"{OFFICE}presentationml.presentation",
    }
)  # fmt: skip

# The channel takes a table as plain text, and shows its name.
_UPLOADED_AS = {"text/csv": "text/plain"}

FILE_RULES: Mapping[MediaType, FileRule] = {
    "image": FileRule(5 * MB, IMAGES),
    "video": FileRule(16 * MB, VIDEOS),
    "audio": FileRule(16 * MB, AUDIO),
    "document": FileRule(100 * MB, DOCUMENTS | _UPLOADED_AS.keys()),
}


async def upload_file(connection: ChannelAccount, file: OutgoingFile) -> str | SendRefusal | None:
    media_type = _UPLOADED_AS.get(file.media_type, file.media_type)
    form: Form = {
        "messaging_product": "whatsapp",
        "type": media_type,
        "file": AttachedFile(file.filename, media_type, file.read(), file.size),
    }
    return await meta.upload(connection, f"{connection.account['phone_number_id']}/media", form, "id", classify)
