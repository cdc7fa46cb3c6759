"""Files that visitors upload: images and documents, within limits for each visitor and each network."""

from sapa.context import AppContext
from sapa.http.uploads import FileStream
from sapa.messaging.files.file_types import (
    EXCEL,
    IMAGE_TYPES,
    OLD_EXCEL,
    OLD_POWERPOINT,
    OLD_WORD,
    OPEN_DOCUMENT,
    POWERPOINT,
    WORD,
)
from sapa.messaging.files.types import Attachment, StoredFile
from sapa.messaging.files.uploads import UploadLimit, UploadRules, upload
from sapa.messaging.widget.limits import build_network
from sapa.messaging.widget.visits import WidgetVisit

MAX_BYTES = 10 * 1_048_576
ACCEPTED = IMAGE_TYPES | {
    "application/pdf", "text/plain", "text/csv", "application/rtf", WORD, EXCEL, POWERPOINT, OLD_WORD, OLD_EXCEL,
    OLD_POWERPOINT, f"{OPEN_DOCUMENT}text", f"{OPEN_DOCUMENT}spreadsheet", f"{OPEN_DOCUMENT}presentation",
}  # fmt: skip

ADVICE = "Send an image (JPEG, PNG, WebP, GIF) or a document (PDF, text, CSV, RTF, Office, OpenDocument)."

PER_VISITOR = {"minute": 5, "day": 20}
PER_NETWORK = {"minute": 60, "day": 600}
"""Higher than for a visitor: many people may share an address."""


async def upload_file(
    context: AppContext, visit: WidgetVisit, address: str, incoming: FileStream, filename: str | None
) -> Attachment:
    rules = UploadRules(_list_limits(visit.visitor.id, address), ACCEPTED, ADVICE, visit.visitor.id)
    stored: StoredFile = await upload(context, visit.company, incoming, context.database.transact, rules, filename)
    return stored.attachment


def _list_limits(visitor_id: str, address: str) -> list[UploadLimit]:
    visitor, network = f"visitor/{visitor_id}", f"network/{build_network(address)}"
    return [
        UploadLimit(visitor, "minute", PER_VISITOR["minute"]),
        UploadLimit(visitor, "day", PER_VISITOR["day"]),
        UploadLimit(network, "minute", PER_NETWORK["minute"]),
        UploadLimit(network, "day", PER_NETWORK["day"]),
    ]
