"""How saved filters are stored."""

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.people.filters.types import SavedFilter

LIST = sql(
    """
    SELECT id, name, query
      FROM saved_filters
     WHERE company_id = $1 AND user_id = $2 AND list = $3
     ORDER BY name
     LIMIT $4""",
    row=SavedFilter,
)

SAVE = sql(
    """
    INSERT INTO saved_filters (company_id, id, user_id, list, name, query)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (company_id, user_id, list, name) DO UPDATE SET query = excluded.query"""
)

DELETE = sql("DELETE FROM saved_filters WHERE company_id = $1 AND user_id = $2 AND id = $3")


async def list_filters(db: Connection, company_id: int, user_id: int, list_name: str, most: int) -> list[SavedFilter]:
    return await LIST.all(db, company_id, user_id, list_name, most)


async def save(tx: Tx, company_id: int, id: str, user_id: int, list_name: str, name: str, query: str) -> None:
    """Replaces the filter of the same name."""
    await SAVE.run(tx, company_id, id, user_id, list_name, name, query)


async def delete(tx: Tx, company_id: int, user_id: int, id: str) -> None:
    await DELETE.run(tx, company_id, user_id, id)
