"""Stores pictures of products, and keeps them as long as a product names them."""

import re
from collections.abc import Iterable
from secrets import token_urlsafe

from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.messaging.files import actions as files
from sapa.messaging.files.file_types import IMAGE_TYPES
from sapa.messaging.files.types import StoredFile
from sapa.messaging.files.uploads import UploadRules
from sapa.pictures import queries
from sapa.pictures.types import ProductPicture
from sapa.products.types import ProductMediaChanged
from sapa.values.company import Company

PATH = "/pictures/"
TOKEN_BYTES = 24
RULES = UploadRules(accepted=IMAGE_TYPES, advice="Send a JPEG, PNG, WebP or GIF picture.")

_parse_address = re.compile(rf".*{PATH}([1-9][0-9]{{0,17}})-([A-Za-z0-9_-]{{32}})", re.ASCII).fullmatch


async def publish(tx: Tx, context: AppContext, company: Company, file: StoredFile) -> ProductPicture:
    """Gives a stored file its address."""
    token = token_urlsafe(TOKEN_BYTES)
    await queries.insert_picture(tx, company.id, token, file.id)
    url = f"{context.settings.server.address}{PATH}{company.id}-{token}"
    return ProductPicture(file.id, url, file.media_type, file.size)


async def follow_product(tx: Tx, company: Company, changed: ProductMediaChanged) -> None:
    """Keeps the pictures that a product names from now on, and releases those that no product names any more. Addresses
    of pictures that were deleted are left alone."""
    before, after = _list_tokens(company, changed.before), _list_tokens(company, changed.after)
    for token in sorted(after - before):
        picture = await queries.add_product(tx, company.id, token, changed.product_id)
        if picture is not None:
            await files.keep_stored(tx, company, [picture.file_id])
    for token in sorted(before - after):
        picture = await queries.remove_product(tx, company.id, token, changed.product_id)
        if picture is not None and not picture.products:
            await files.release(tx, company, [picture.file_id])


def _list_tokens(company: Company, urls: Iterable[str]) -> set[str]:
    """Of the company's own pictures."""
    parsed = [_parse_address(url) for url in urls]
    return {found[2] for found in parsed if found and int(found[1]) == company.id}
