"""SQL of the tracking page's settings."""

from datetime import datetime

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.shipping.tracking_page.types import StoredPageSettings

COLUMNS = ", ".join(StoredPageSettings.__struct_fields__)

FIND = sql(f"SELECT {COLUMNS} FROM tracking_page_settings WHERE company_id = $1", row=StoredPageSettings)

SAVE = sql(
    f"""
    INSERT INTO tracking_page_settings (company_id, display_name, color, logo, logo_type, language, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (company_id) DO UPDATE
       SET display_name = excluded.display_name, color = excluded.color, logo = excluded.logo,
           logo_type = excluded.logo_type, language = excluded.language, updated_at = excluded.updated_at
    RETURNING {COLUMNS}""",
    row=StoredPageSettings,
)


async def find_settings(db: Connection, company_id: int) -> StoredPageSettings | None:
    return await FIND.find(db, company_id)


async def save_settings(
    tx: Tx,
    company_id: int,
    display_name: str | None,
    color: str | None,
    logo: tuple[str, bytes] | None,
    language: str,
    now: datetime,
) -> StoredPageSettings:
    type, content = logo or (None, None)
    (saved,) = await SAVE.all(tx, company_id, display_name, color, content, type, language, now)
    return saved
