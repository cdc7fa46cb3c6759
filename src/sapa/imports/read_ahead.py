"""Reads and prepares rows while the database stores the ones before."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from sapa.imports.rows import Batch, RowReader

MAX_BYTES_OF_A_BATCH = 4 * 1_048_576
ROWS_OF_A_PIECE = 5
"""Batches are made of whole pieces. Larger ones would keep the smallest batches from growing by half."""
BYTES_OF_A_PIECE = 262_144


class ReadAhead:
    """The batches of a file, made of pieces that a task reads in advance."""

    def __init__(self, reader: RowReader, max_rows: int) -> None:
        self._reader = reader
        self._pieces: asyncio.Queue[Batch | Exception] = asyncio.Queue(max(1, max_rows // ROWS_OF_A_PIECE))

    async def read(self) -> None:
        """Reads to the end of the file, at most as many rows ahead as the largest batch has."""
        try:
            is_last = False
            while not is_last:
                piece = await self._reader.next_batch(ROWS_OF_A_PIECE, BYTES_OF_A_PIECE)
                is_last = piece.is_last
                await self._pieces.put(piece)
        except Exception as error:
            await self._pieces.put(error)

    async def next_batch(self, max_rows: int) -> Batch:
        """Raises what reading raised, after the rows before."""
        batch = await self._next_piece()
        parts, start = list(batch.parts), batch.position
        while (
            not batch.is_last
            and len(parts) + ROWS_OF_A_PIECE <= max_rows
            and batch.position - start < MAX_BYTES_OF_A_BATCH
        ):
            batch = await self._next_piece()
            parts += batch.parts
        return Batch(parts, batch.position, batch.line, batch.is_last)

    async def _next_piece(self) -> Batch:
        piece = await self._pieces.get()
        if isinstance(piece, Exception):
            raise piece
        return piece


@asynccontextmanager
async def read_ahead(reader: RowReader, max_rows: int) -> AsyncIterator[ReadAhead]:
    """Reads while the block runs."""
    ahead = ReadAhead(reader, max_rows)
    reading = asyncio.create_task(ahead.read())
    try:
        yield ahead
    finally:
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
