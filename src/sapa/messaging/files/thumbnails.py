"""Makes small pictures of images: the image on standard input, the picture on standard output.

It runs as a process of its own, because an image is what a stranger sent: a small one may unpack to gigabytes, or end
the process that decodes it. The system limits its memory and its time. It has no secrets and no database.
"""

import resource
import sys
from io import BytesIO

from PIL import Image, ImageOps, UnidentifiedImageError

MAX_PIXELS = 50_000_000
THUMBNAIL_SIZE = (320, 320)
QUALITY = 75
CPU_SECONDS = 10
MAX_MEMORY_BYTES = 1_073_741_824

# Ours is checked below, before anything is unpacked; the library's own limit would be a warning first.
Image.MAX_IMAGE_PIXELS = None

_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")


def make_thumbnail(content: bytes) -> bytes | None:
    """The first frame, upright, without the image's metadata; None if it cannot be read or is too large."""
    try:
        with Image.open(BytesIO(content), formats=_FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                return None
            image.draft("RGB", THUMBNAIL_SIZE)
            image.thumbnail(THUMBNAIL_SIZE)
            target = BytesIO()
            _flatten(ImageOps.exif_transpose(image)).save(target, "WEBP", quality=QUALITY)
            return target.getvalue()
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, MemoryError):
        return None


def _flatten(image: Image.Image) -> Image.Image:
    """The pixels only: what else an image carries is not copied."""
    mode = "RGBA" if image.has_transparency_data else "RGB"
    plain = Image.new(mode, image.size)
    plain.paste(image.convert(mode))
    return plain


def _run() -> int:
    if sys.platform == "linux":  # elsewhere the limit is refused or ignored
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    thumbnail = make_thumbnail(sys.stdin.buffer.read())
    if thumbnail is None:
        return 1
    sys.stdout.buffer.write(thumbnail)
    return 0


if __name__ == "__main__":
    sys.exit(_run())
