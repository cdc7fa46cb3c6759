"""How pictures of products are uploaded."""

from collections.abc import Awaitable, Callable

from sapa.access.types import Scope
from sapa.db.pool import Tx
from sapa.http.endpoints import Base, Routes, ToolTraits
from sapa.http.uploads import UploadCall
from sapa.messaging.files.types import StoredFile, TooManyUnusedFiles, TooManyUploads
from sapa.messaging.files.uploads import upload
from sapa.pictures import actions
from sapa.pictures.types import ProductPicture

routes = Routes("/product-pictures", base=Base.CUSTOMER, tag="Products")


@routes.post(
    "",
    scope=Scope.PRODUCTS_WRITE,
    raises=[TooManyUploads, TooManyUnusedFiles],
    tool=ToolTraits(hidden="It takes a file, which a tool call cannot carry."),
)
async def upload_product_picture(call: UploadCall) -> ProductPicture:
    """Upload a picture for products.

    Send a JPEG, PNG, WebP or GIF file as the body, or as the only file of a multipart form. Then name its `pictureUrl`
    in `media` or `medias` of a product, or in `media` of a variant. The address cannot be guessed and needs no key. A
    picture that no product names is deleted after 24 hours. Any other is deleted when the last product that names it is
    deleted or no longer names it.

    A picture has at most 25 MiB (the operator may change that). A company can upload 20 files a minute.
    """

    async def conclude(work: Callable[[Tx], Awaitable[StoredFile]]) -> ProductPicture:
        async def store(tx: Tx) -> ProductPicture:
            return await actions.publish(tx, call.context, call.company, await work(tx))

        return await call.conclude(store)

    return await upload(call.context, call.company, call.file, conclude, actions.RULES)
