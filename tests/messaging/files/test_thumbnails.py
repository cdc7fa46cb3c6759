"""Thumbnails: small, upright, without metadata, and never from an image that unpacks to too much."""

import subprocess
import sys
from io import BytesIO

import pytest
from PIL import Image, ImageChops

from sapa.messaging.files import thumbnails
from sapa.messaging.files.thumbnails import MAX_PIXELS, THUMBNAIL_SIZE, make_thumbnail
from tests.messaging.files.corpus import ALL, SampleFile, make_image


def open_image(content: bytes | None) -> Image.Image:
    assert content is not None
    image = Image.open(BytesIO(content))
    image.load()
    return image


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "GIF"])
def test_an_image_becomes_small(format: str) -> None:
    small = open_image(make_thumbnail(make_image(format, (1600, 1200))))
    assert (small.format, small.size) == ("WEBP", (320, 240))
    teal = Image.new("RGB", small.size, "teal")
    assert max(high for _, high in ImageChops.difference(small.convert("RGB"), teal).getextrema()) < 20  # type: ignore[misc]


def test_a_photo_is_upright_and_says_nothing_about_its_owner() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    exif[0x010F] = "Camera of Ayu"
    small = open_image(make_thumbnail(make_image("JPEG", (800, 400), exif=exif)))
    assert small.size == (160, 320)
    assert not small.getexif()


def test_transparency_stays() -> None:
    target = BytesIO()
    Image.new("RGBA", (400, 400), (0, 0, 0, 0)).save(target, "PNG")
    assert open_image(make_thumbnail(target.getvalue())).mode == "RGBA"


@pytest.mark.parametrize("file", ALL, ids=lambda file: f"{file.name} is {file.media_type}")
def test_any_file_gives_a_small_picture_or_none(file: SampleFile) -> None:
    made = make_thumbnail(file.content)
    if made is not None:
        assert file.media_type.startswith("image/")
        assert max(open_image(made).size) <= max(THUMBNAIL_SIZE)


def test_an_image_of_too_many_pixels_is_not_unpacked() -> None:
    side = int(MAX_PIXELS**0.5) + 1
    assert make_thumbnail(make_image("PNG", (side, side))) is None


@pytest.mark.processes
def test_the_process_answers_with_the_picture_or_fails() -> None:
    command = [sys.executable, "-m", thumbnails.__name__]
    made = subprocess.run(command, input=make_image("PNG", (640, 480)), capture_output=True, check=True)
    assert open_image(made.stdout).size == (320, 240)
    # A WebP image whose decoder allocates its whole canvas as soon as it is opened.
    canvas = (16_383 - 1).to_bytes(3, "little") * 2
    header = b"WEBPVP8X\x0a\0\0\0\x02\0\0\0" + canvas + b"ANIM\x06\0\0\0" + bytes(6)
    bomb = b"RIFF" + len(header).to_bytes(4, "little") + header
    refused = subprocess.run(command, input=bomb, capture_output=True, check=False)
    assert (refused.returncode != 0, refused.stdout) == (True, b"")
