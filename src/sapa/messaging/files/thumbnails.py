"""Makes small pictures of images. Pure, and slow: call it outside of the event loop."""

from io import BytesIO

from PIL import Image, ImageOps, UnidentifiedImageError

MAX_PIXELS = 50_000_000
"""Of the image. A small file may unpack to far more."""
THUMBNAIL_SIZE = (320, 320)
THUMBNAIL_TYPE = "image/webp"
QUALITY = 75

# Nothing of an image is unpacked before its size is known; the library itself refuses twice this many pixels.
Image.MAX_IMAGE_PIXELS = MAX_PIXELS

_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")


def make_thumbnail(content: bytes) -> bytes | None:
    """The first frame, upright, without the image's metadata; None if it cannot be read or is too large."""
    try:
        with Image.open(BytesIO(content), formats=_FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                return None
            image.draft("RGB", THUMBNAIL_SIZE)
            image.thumbnail(THUMBNAIL_SIZE)
            upright = ImageOps.exif_transpose(image)
            target = BytesIO()
            _flatten(upright).save(target, "WEBP", quality=QUALITY)
            return target.getvalue()
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError, SyntaxError, MemoryError):
        return None


def _flatten(image: Image.Image) -> Image.Image:
    """With the pixels only: what else an image carries is not copied."""
    mode = "RGBA" if image.has_transparency_data else "RGB"
    converted = image.convert(mode)
    plain = Image.new(mode, converted.size)
    plain.paste(converted)
    return plain
