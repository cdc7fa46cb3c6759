"""How pictures of products are stored."""

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.pictures.types import StoredPicture

INSERT = sql("INSERT INTO product_pictures (company_id, token, file_id) VALUES ($1, $2, $3)")

FIND = sql("SELECT file_id, products FROM product_pictures WHERE company_id = $1 AND token = $2", row=StoredPicture)

ADD_PRODUCT = sql(
    """
    UPDATE product_pictures
       SET products = array_append(array_remove(products, $3), $3)
     WHERE company_id = $1 AND token = $2
    RETURNING file_id, products""",
    row=StoredPicture,
)

REMOVE_PRODUCT = sql(
    """
    UPDATE product_pictures
       SET products = array_remove(products, $3)
     WHERE company_id = $1 AND token = $2
    RETURNING file_id, products""",
    row=StoredPicture,
)


async def insert_picture(tx: Tx, company_id: int, token: str, file_id: str) -> None:
    await INSERT.run(tx, company_id, token, file_id)


async def find_picture(db: Connection, company_id: int, token: str) -> StoredPicture | None:
    return await FIND.find(db, company_id, token)


async def add_product(tx: Tx, company_id: int, token: str, product_id: str) -> StoredPicture | None:
    """None if there is no such picture any more."""
    return await ADD_PRODUCT.find(tx, company_id, token, product_id)


async def remove_product(tx: Tx, company_id: int, token: str, product_id: str) -> StoredPicture | None:
    return await REMOVE_PRODUCT.find(tx, company_id, token, product_id)
