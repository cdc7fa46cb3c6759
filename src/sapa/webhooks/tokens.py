"""Developer tokens: with one, a developer's machine listens to a company's events. Only its hash is stored."""

import re
import secrets
from hashlib import sha256

from sapa.access.types import CompanyNotFound
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import Invalid
from sapa.webhooks.types import NewToken, Token, TokenNotFound

PREFIX = "dev_"
DEFAULT_DAYS = 30
MOST_DAYS = 365
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LENGTH = 40
_ID = re.compile(r"[0-9a-f]{16}").fullmatch
_FORM = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_LENGTH}}}").fullmatch

_COLUMNS = "left(encode(hash, 'hex'), 16) AS id, company_id, created_at, expires_at"

# In company time, as keys are.
INSERT = sql(
    f"""
    INSERT INTO developer_tokens (company_id, hash, expires_at)
    SELECT $1, $2, now() + c.clock_offset + make_interval(days => $3)
      FROM companies c
     WHERE c.company_id = $1
    RETURNING {_COLUMNS}""",
    row=Token,
)

FORGET_EXPIRED = sql(
    """
    DELETE FROM developer_tokens AS t
     USING companies AS c
     WHERE t.company_id = $1 AND c.company_id = $1 AND t.expires_at <= now() + c.clock_offset"""
)

LIST = sql(f"SELECT {_COLUMNS} FROM developer_tokens WHERE company_id = $1 ORDER BY created_at, hash", row=Token)

REVOKE = sql(
    f"""
    DELETE FROM developer_tokens
     WHERE hash = $1 OR left(encode(hash, 'hex'), 16) = $2
    RETURNING {_COLUMNS}""",
    row=Token,
    crosses="a raw token or its id is all that a command brings: it tells the company",
)

FIND_COMPANY = sql(
    """
    SELECT t.company_id
      FROM developer_tokens t
      JOIN companies c ON c.company_id = t.company_id
     WHERE t.hash = $1 AND t.expires_at > now() + c.clock_offset""",
    crosses="a raw token is all that a listener brings: it tells the company",
)


async def create(tx: Tx, company_id: int, days: int = DEFAULT_DAYS) -> NewToken:
    """A token for so many days. Its value is told here and never again."""
    if not 1 <= days <= MOST_DAYS:
        raise Invalid.field("days", f"must be from 1 to {MOST_DAYS}")
    await FORGET_EXPIRED.run(tx, company_id)
    raw = PREFIX + "".join(secrets.choice(_BASE62) for _ in range(_LENGTH))
    info = await INSERT.find(tx, company_id, hash_token(raw), days)
    if info is None:
        raise CompanyNotFound
    return NewToken(raw, info)


async def revoke(tx: Tx, which: str) -> Token:
    """By the token itself or by its id; whoever listens with it is cut off within a second."""
    id = which if _ID(which) else None
    token = await REVOKE.find(tx, hash_token(which), id)
    if token is None:
        raise TokenNotFound
    return token


async def list_tokens(db: Connection, company_id: int) -> list[Token]:
    return await LIST.all(db, company_id)


async def find_company(db: Connection, raw: str) -> int | None:
    """The company that a working token opens."""
    company_id: int | None = await FIND_COMPANY.value(db, hash_token(raw)) if _FORM(raw) else None
    return company_id


def hash_token(raw: str) -> bytes:
    return sha256(raw.encode()).digest()
