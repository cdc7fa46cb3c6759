"""Developer tokens: with one, a developer's machine listens to a company's events. Only its hash is stored."""

import re
import secrets
from hashlib import sha256

from sapa.access.types import CompanyNotFound
from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.webhooks.tokens import queries
from sapa.webhooks.types import NewToken, Token, TokenNotFound

PREFIX = "dev_"
DEFAULT_DAYS = 30
MAX_DAYS = 365
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LENGTH = 40
_is_id = re.compile(r"[0-9a-f]{16}").fullmatch
_is_token = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_LENGTH}}}").fullmatch


async def create(tx: Tx, company_id: int, days: int = DEFAULT_DAYS) -> NewToken:
    """The token's value is returned here and cannot be read again."""
    if not 1 <= days <= MAX_DAYS:
        raise Invalid.field("days", f"must be from 1 to {MAX_DAYS}")
    await queries.delete_expired(tx, company_id)
    raw = PREFIX + "".join(secrets.choice(_BASE62) for _ in range(_LENGTH))
    token = await queries.insert_token(tx, company_id, hash_token(raw), days)
    if token is None:
        raise CompanyNotFound
    return NewToken(raw, token)


async def revoke(tx: Tx, token_or_id: str) -> Token:
    """Open streams of this token end within a second."""
    id = token_or_id if _is_id(token_or_id) else None
    token = await queries.revoke_token(tx, hash_token(token_or_id), id)
    if token is None:
        raise TokenNotFound
    return token


async def list_tokens(db: Connection, company_id: int) -> list[Token]:
    return await queries.list_tokens(db, company_id)


async def find_company(db: Connection, raw: str) -> int | None:
    """The company that a valid token belongs to."""
    return await queries.find_company(db, hash_token(raw)) if _is_token(raw) else None


def hash_token(raw: str) -> bytes:
    return sha256(raw.encode()).digest()
