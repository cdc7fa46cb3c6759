"""The yardstick of status callbacks: verifies the signature, parses the body and upserts its statuses, all at once.

Nothing is looked up, put in order, announced or logged.
"""

import hmac
from hashlib import sha256
from typing import Any

import msgspec

from bench.ceiling.app import Ceiling, Receive, Send, answer
from bench.messaging.numbers import SECRET

TABLE = """
    CREATE TABLE bare_statuses (
        message_id text COLLATE "C" PRIMARY KEY, status text NOT NULL, at timestamptz NOT NULL
    );
    GRANT SELECT, INSERT, UPDATE ON bare_statuses TO PUBLIC"""

UPSERT = """
    INSERT INTO bare_statuses (message_id, status, at)
    SELECT id, status, to_timestamp(seconds::bigint)
      FROM unnest($1::text[], $2::text[], $3::text[]) AS s (id, status, seconds)
        ON CONFLICT (message_id) DO UPDATE SET status = excluded.status, at = excluded.at"""


class BareStatuses(Ceiling):
    """`POST` is a callback; everything else is answered at once."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._live(receive, send)
        if scope["method"] != "POST":
            return await answer(send, 200, b"{}")
        body = (await receive())["body"]
        signature = "sha256=" + hmac.new(SECRET.encode(), body, sha256).hexdigest()
        if not hmac.compare_digest(signature.encode(), dict(scope["headers"])[b"x-hub-signature-256"]):
            return await answer(send, 401, b"{}")
        callback = msgspec.json.decode(body)
        statuses = [
            status
            for entry in callback["entry"]
            for change in entry["changes"]
            for status in change["value"]["statuses"]
        ]
        columns = [[status[name] for status in statuses] for name in ("id", "status", "timestamp")]
        async with self.pool.connection() as db:
            await db.execute(UPSERT, *columns)
        return await answer(send, 200, b"{}")


app = BareStatuses()
