"""Files as request bodies, read as they arrive: the body itself, or the file of a multipart form."""

from collections.abc import AsyncIterator, Awaitable, Callable
from hashlib import sha256
from typing import TypeVar

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http import idempotency
from sapa.http.errors import Invalid, PayloadTooLarge
from sapa.http.idempotency import IdempotencyClaim
from sapa.http.keys import Key
from sapa.http.outbound_call import Replayed
from sapa.http.responses import HttpResponse, encode_result
from sapa.values.company import Company

MAX_FORM_BYTES = 65_536
"""What a form may have besides the file."""
FORM = b"multipart/form-data"

Result = TypeVar("Result")


class FileStream:
    """A file as it arrives."""

    def __init__(self, chunks: AsyncIterator[bytes], max_bytes: int, length: int | None = None) -> None:
        self._chunks = chunks
        self._limit = max_bytes
        self._hash = sha256()
        self.filename: str | None = None
        """The name of a file in a form, once its header is read."""
        self.max_bytes = max_bytes if length is None else min(length, max_bytes)
        """At most this many bytes follow."""

    async def read(self) -> AsyncIterator[bytes]:
        """Raises PayloadTooLarge at the first byte above the limit."""
        size = 0
        async for chunk in self._chunks:
            size += len(chunk)
            if size > self._limit:
                raise build_too_large(self._limit)
            self._hash.update(chunk)
            yield chunk

    def build_fingerprint(self, query: bytes) -> bytes:
        """What a repeated upload has to have in common with the first: name and content. The boundary of a form differs
        each time."""
        named = b"\n".join([query, (self.filename or "").encode(), self._hash.digest()])
        return sha256(named).digest()


def build_too_large(max_bytes: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The file is larger than {max_bytes // 1_048_576} MiB.")


class UploadCall:
    """What the handler of an upload gets in place of a transaction: the file, and `conclude` for the transaction after
    its last byte, which also stores the response for a repeated request."""

    __slots__ = ("_idempotency_key", "_query", "_response", "_status", "_target", "context", "file", "key")

    def __init__(
        self,
        context: AppContext,
        key: Key,
        file: FileStream,
        status: int,
        target: str,
        query: bytes = b"",
        idempotency_key: str | None = None,
    ) -> None:
        self.context = context
        self.key = key
        self.file = file
        self._status = status
        self._target = target
        self._query = query
        self._idempotency_key = idempotency_key
        self._response: HttpResponse | None = None

    @property
    def company(self) -> Company:
        return self.key.company

    @property
    def response(self) -> HttpResponse:
        if self._response is None:
            raise RuntimeError("the handler of an upload did not conclude it")
        return self._response

    async def conclude(
        self, work: Callable[[Tx], Awaitable[Result]], present: Callable[[Result], object] = lambda result: result
    ) -> Result:
        """One transaction after the file; `present` turns its result into the response's data. Raises Replayed if the
        same file was uploaded with the same Idempotency-Key before."""
        claim = self._build_claim()

        async def claim_and_work(tx: Tx) -> tuple[Result, HttpResponse]:
            if claim is not None and (replay := await idempotency.acquire(tx, claim)):
                raise Replayed(replay)
            result = await work(tx)
            response = encode_result(present(result), self._status)
            if claim is not None:
                await idempotency.settle(tx, claim, response)
            return result, response

        result, self._response = await self.context.database.transact(claim_and_work)
        return result

    def _build_claim(self) -> IdempotencyClaim | None:
        if self._idempotency_key is None:
            return None
        fingerprint = self.file.build_fingerprint(self._query)
        return idempotency.build_claim(self.company.id, self._idempotency_key, self._target, fingerprint)


class FormFile(FileStream):
    """The one file of a multipart form."""

    def __init__(
        self, chunks: AsyncIterator[bytes], boundary: bytes, max_bytes: int, length: int | None = None
    ) -> None:
        if not 1 <= len(boundary) <= 70:
            raise Invalid("The Content-Type of a form needs its boundary.")
        super().__init__(self._parse(chunks, boundary), max_bytes, length)

    async def _parse(self, chunks: AsyncIterator[bytes], boundary: bytes) -> AsyncIterator[bytes]:
        form = _FormReader(boundary, self._take_name)
        async for chunk in chunks:
            for data in form.feed(chunk):
                yield data
        form.finish()

    def _take_name(self, filename: str) -> None:
        self.filename = filename


class _FormReader:
    """Feeds a form's bytes to the parser and collects those of its file."""

    def __init__(self, boundary: bytes, take_name: Callable[[str], None]) -> None:
        self._take_name = take_name
        self._found: list[bytes] = []
        self._is_in_file = False
        self._name, self._value = b"", b""
        self._files = 0
        self._rest_bytes = 0
        self._is_complete = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin_part,
                "on_header_field": self._add_name,
                "on_header_value": self._add_value,
                "on_header_end": self._end_header,
                "on_part_data": self._add_data,
                "on_end": self._end,
            },
        )

    def feed(self, chunk: bytes) -> list[bytes]:
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise Invalid(f"The form cannot be read: {error}.") from None
        found, self._found = self._found, []
        return found

    def finish(self) -> None:
        if not self._is_complete:
            raise Invalid("The form is incomplete. Send its last boundary, too.")
        if not self._files:
            raise Invalid("The form has no file. Send one as a part with a filename.")

    def _begin_part(self) -> None:
        self._is_in_file = False

    def _add_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]
        self._count(end - start)

    def _add_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._count(end - start)

    def _end_header(self) -> None:
        name, value, self._name, self._value = self._name.lower(), self._value, b"", b""
        if name != b"content-disposition":
            return
        _, options = parse_options_header(value)
        if b"filename" not in options:
            return
        self._files += 1
        if self._files > 1:
            raise Invalid("The form has several files. Upload each with a request of its own.")
        self._is_in_file = True
        self._take_name(options[b"filename"].decode("utf-8", "replace"))

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_in_file:
            self._found.append(data[start:end])
        else:
            self._count(end - start)

    def _count(self, size: int) -> None:
        self._rest_bytes += size
        if self._rest_bytes > MAX_FORM_BYTES:
            raise PayloadTooLarge(f"The form has more than {MAX_FORM_BYTES // 1024} KiB besides its file.")

    def _end(self) -> None:
        self._is_complete = True
