"""Pictures of products that the product holds."""

from typing import Annotated

from msgspec import Meta, Struct

from sapa.messaging.files.types import FileId


class ProductPicture(Struct, frozen=True, rename="camel"):
    """An uploaded picture. Products name it by its `pictureUrl`."""

    id: FileId
    picture_url: Annotated[
        str,
        Meta(
            examples=["https://sapa.example/pictures/1-kT9wqzPj1mBvX0nR7sLc2dFh"],
            description="Anyone who has it can see the picture.",
        ),
    ]
    media_type: Annotated[str, Meta(examples=["image/jpeg"], description="Read from the file's bytes.")]
    size: Annotated[int, Meta(examples=[20480], description="In bytes.")]


class StoredPicture(Struct, frozen=True):
    """A picture's file and the products that name it."""

    file_id: str
    products: list[str]
