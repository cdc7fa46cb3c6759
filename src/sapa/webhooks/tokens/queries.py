"""How developer tokens are stored: by their hash only."""

from sapa.db.due import build_clock
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.webhooks.types import Token

_COLUMNS = "left(encode(hash, 'hex'), 16) AS id, company_id, created_at, expires_at"

# In company time, as for API keys.
INSERT = sql(
    f"""
    WITH inserted AS (
        INSERT INTO developer_tokens AS t (company_id, hash, expires_at)
        SELECT $1, $2, now() + c.clock_offset + make_interval(days => $3)
          FROM companies c
         WHERE c.company_id = $1
        RETURNING t.company_id, t.hash, t.created_at, t.expires_at
    )
    SELECT {_COLUMNS} FROM inserted WHERE company_id = $1""",
    row=Token,
)

DELETE_EXPIRED = sql(
    f"""
    DELETE FROM developer_tokens AS t
     USING {build_clock()}
     WHERE t.company_id = $1 AND t.expires_at <= clock.now"""
)

LIST = sql(f"SELECT {_COLUMNS} FROM developer_tokens WHERE company_id = $1 ORDER BY created_at, hash", row=Token)

REVOKE = sql(
    f"""
    DELETE FROM developer_tokens
     WHERE hash = $1 OR left(encode(hash, 'hex'), 16) = $2
    RETURNING {_COLUMNS}""",
    row=Token,
    crosses="a command has only a raw token or its id, which determines the company",
)

FIND_COMPANY = sql(
    """
    SELECT t.company_id
      FROM developer_tokens t
      JOIN companies c ON c.company_id = t.company_id
     WHERE t.hash = $1 AND t.expires_at > now() + c.clock_offset""",
    crosses="a listener has only a raw token, which determines the company",
)


async def insert_token(tx: Tx, company_id: int, hash: bytes, days: int) -> Token | None:
    """None when the company does not exist."""
    return await INSERT.find(tx, company_id, hash, days)


async def delete_expired(tx: Tx, company_id: int) -> None:
    await DELETE_EXPIRED.run(tx, company_id)


async def list_tokens(db: Connection, company_id: int) -> list[Token]:
    return await LIST.all(db, company_id)


async def revoke_token(tx: Tx, hash: bytes, id: str | None) -> Token | None:
    return await REVOKE.find(tx, hash, id)


async def find_company(db: Connection, hash: bytes) -> int | None:
    """None when the token is unknown, revoked or expired."""
    company_id: int | None = await FIND_COMPANY.value(db, hash)
    return company_id
