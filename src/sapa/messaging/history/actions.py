"""Records of the calls that send messages, refused calls included.

A record's timestamps and a later failure are read from the message itself, so the two never differ. Request and
response are sealed together.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from sapa.access.actions import list_beyond, read_clock
from sapa.access.types import CompanyClock
from sapa.context import AppContext
from sapa.db.pool import Connection, Tx
from sapa.http.errors import ApiError
from sapa.http.keys import Key, mask_key
from sapa.http.outbound_call import RequestInfo
from sapa.http.responses import Accepted
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import find_source
from sapa.messaging.history import queries
from sapa.messaging.history.queries import (
    EARLIEST,
    LATEST,
    NewRecord,
    RecordFilter,
    StoredRecord,
)
from sapa.messaging.history.types import (
    RECORD_ID,
    EndpointType,
    RecordsMeta,
    RecordsPage,
    RecordsQuery,
    RequestRecord,
    RequestSnapshot,
    ResponseSnapshot,
)
from sapa.messaging.messages.types import (
    NO_WORD,
    Message,
    SendError,
    SendFailed,
)
from sapa.values.company import Company
from sapa.values.json import encode
from sapa.values.provider_refusals import ProviderRefusal
from sapa.values.sealing import ResealedBatch, Vault

ENDPOINT_TYPES: dict[str, EndpointType] = {
    "/messages/send": "send_message",
    "/messages/send-template": "send_message_template",
    "/messages/send-media": "send_message_media",
    "/messages/send-interactive": "send_message_interactive",
}
MAX_TEMPLATE_NAME_LENGTH = 512
KEY_HEADER = "x-api-key"


class CallRecord(Struct, frozen=True):
    """A call to record: its id, its time, and the request."""

    id: str
    clock: CompanyClock
    company: Company
    vault: Vault
    endpoint_type: EndpointType
    request: Raw
    """Its `RequestSnapshot`, which is sealed with each response."""


class SealedCall(Struct, frozen=True):
    """The sealed part of a record."""

    request: RequestSnapshot
    response: ResponseSnapshot


class EncodedCall(Struct, frozen=True):
    """A `SealedCall` to write."""

    request: Raw
    response: ResponseSnapshot


def start_record(vault: Vault, company: Company, clock: CompanyClock, request: RequestInfo) -> CallRecord:
    snapshot = RequestSnapshot(
        request.address,
        request.forwarded,
        build_body(request.body),
        request.query,
        request.base_url,
        request.headers,
        request.hostname,
    )
    return CallRecord(RECORD_ID.new(), clock, company, vault, get_endpoint_type(request), Raw(encode(snapshot)))


async def record(tx: Tx, call_record: CallRecord, message: Message) -> None:
    """Records a call that created a message, with the response it gets if no outcome follows."""
    await queries.insert_record(tx, call_record.company.id, _build_new(call_record, message))


def _build_new(call_record: CallRecord, message: Message) -> NewRecord:
    return NewRecord(
        call_record.clock.real,
        call_record.id,
        call_record.clock.now,
        message.message_id2,
        message.template_id,
        message.source,
        call_record.endpoint_type,
        None,
        seal_response(call_record, message),
    )


def build_record_values(call_record: CallRecord, message: Message) -> dict[str, object]:
    """The parameters of the part `record`: what `record` stores, for a statement of another room."""
    new = _build_new(call_record, message)
    counters, cells = queries.list_cells(new)
    fields = {f"record_{name}": getattr(new, name) for name in new.__struct_fields__}
    return {**fields, "record_counters": counters, "record_cells": cells}


async def record_response(tx: Tx, call_record: CallRecord, result: Message | Accepted[Message] | ApiError) -> None:
    """Stores the final response of a call."""
    snapshot = seal_response(call_record, result)
    await queries.reseal(tx, call_record.company.id, call_record.clock.real, call_record.id, snapshot)


async def record_refusal(context: AppContext, company: Company, request: RequestInfo, error: ApiError) -> None:
    """Records a call that was refused before a message existed."""
    template_id, source = _parse_body(request.body)
    async with context.database.transaction() as tx:
        clock = await read_clock(tx, company.id)
        call_record = start_record(context.vault, company, clock, request)
        new = NewRecord(
            clock.real,
            call_record.id,
            clock.now,
            None,
            template_id,
            source,
            call_record.endpoint_type,
            clock.now,
            seal_response(call_record, error),
        )
        await queries.insert_record(tx, company.id, new)


async def list_page(db: Connection, vault: Vault, reader: Key, query: RecordsQuery) -> RecordsPage:
    """The newest first. The keys of other callers are masked if they may do more than the reader."""
    company = reader.company
    record_filter = RecordFilter(
        query.template_id,
        min(max(query.start_date or EARLIEST, EARLIEST), LATEST),
        min(max(query.end_date or LATEST, EARLIEST), LATEST),
    )
    if query.response_id is not None:
        found = await queries.list_by_message(db, company.id, query.response_id, list(Source), record_filter)
        total, stored = len(found), found[query.offset : query.offset + query.limit]
    else:
        total = await queries.count_records(db, company.id, record_filter)
        stored = (
            await queries.list_records(db, company.id, record_filter, query.limit, query.offset)
            if query.offset < total
            else []
        )
    records = [_build_record(vault, company, record) for record in stored]
    pages = -(-total // query.limit)
    meta = RecordsMeta(query.page, query.limit, total, pages, query.page < pages, query.page > 1)
    return RecordsPage(await _mask_keys(db, reader, records), meta)


async def reseal(tx: Tx, vault: Vault, company_id: int, after: str, limit: int) -> ResealedBatch:
    """One batch of a rotation of the secret key."""
    batch = vault.reseal(await queries.lock_sealed(tx, company_id, after, limit), company_id)
    await queries.replace_sealed(tx, company_id, batch.sealed)
    return batch


def get_endpoint_type(request: RequestInfo) -> EndpointType:
    return ENDPOINT_TYPES[request.path.removeprefix(request.base_url)]


def build_failure(error: SendError, retry_after: float | None = None) -> SendFailed:
    """The error that the caller of a failed message gets."""
    if error.code == NO_WORD:
        return SendFailed(error.message)
    refusal = error.category and ProviderRefusal(error.category, error.code, bool(error.retryable))
    pause = retry_after if retry_after and error.category == "rate" else 0
    message = f"The channel refused the message: {error.message} (code {error.code})"
    return SendFailed(message, refusal=refusal or None, pause=pause)


def seal_response(call_record: CallRecord, result: Message | Accepted[Message] | ApiError) -> bytes:
    """The sealed part of a record with this response."""
    sealed = encode(EncodedCall(call_record.request, _build_response(result)))
    return call_record.vault.seal(sealed, call_record.company.id, call_record.id)


def build_body(body: bytes) -> Raw:
    """The body byte for byte, so that numbers keep their form; as a string if it is not JSON."""
    try:
        text = body.decode()
        msgspec.json.decode(text)
        return Raw(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Raw(encode(body.decode("utf-8", "replace")))


def _build_response(result: Message | Accepted[Message] | ApiError) -> ResponseSnapshot:
    if isinstance(result, ApiError):
        return ResponseSnapshot(error=Raw(encode(result.build_body())))
    message = result.data if isinstance(result, Accepted) else result
    return ResponseSnapshot(data=Raw(encode(message)))


def _parse_body(body: bytes) -> tuple[str | None, Source | None]:
    """The template and the channel that a refused call named, as far as its body can be parsed."""
    try:
        payload: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None, None
    if not isinstance(payload, dict):
        return None, None
    name, sources = payload.get("template_name"), payload.get("sources")
    template_id = (
        name if isinstance(name, str) and 0 < len(name) <= MAX_TEMPLATE_NAME_LENGTH and "\0" not in name else None
    )
    word = sources[0] if isinstance(sources, list) and sources else sources
    return template_id, find_source(word) if isinstance(word, str) else None


async def _mask_keys(db: Connection, reader: Key, records: list[RequestRecord]) -> list[RequestRecord]:
    """Otherwise a key that may read messages could take the rights of any key that sends them."""
    sent = {raw for record in records if (raw := record.request.headers.get(KEY_HEADER))}
    beyond = await list_beyond(db, reader, sent)
    return [_mask_key(record) if record.request.headers.get(KEY_HEADER) in beyond else record for record in records]


def _mask_key(record: RequestRecord) -> RequestRecord:
    headers = record.request.headers
    masked = replace(record.request, headers=headers | {KEY_HEADER: mask_key(headers[KEY_HEADER])})
    return replace(record, request=masked)


def _build_record(vault: Vault, company: Company, stored: StoredRecord) -> RequestRecord:
    snapshot = msgspec.json.decode(vault.open(stored.snapshot, company.id, stored.id), type=SealedCall)
    return RequestRecord(
        id=stored.id,
        company_id=company.id,
        message_id2=stored.message_id,
        template_id=stored.template_id,
        source=Source(stored.source) if stored.source else None,
        request=snapshot.request,
        response=_build_current_response(snapshot.response, stored),
        endpoint_type=stored.endpoint_type,  # type: ignore[arg-type]
        sent_at=stored.sent_at,
        delivered_at=stored.delivered_at,
        read_at=stored.read_at,
        replied_at=stored.replied_at,
        failed_at=stored.failed_at,
        created_at=stored.created_at,
    )


def _build_current_response(response: ResponseSnapshot, stored: StoredRecord) -> ResponseSnapshot:
    """A failure that was reported later replaces the response."""
    if stored.failed_at is None or response.error is not UNSET or stored.error is None:
        return response
    return _build_response(build_failure(msgspec.json.decode(stored.error, type=SendError)))
