"""URLs of files and links in messages."""

import pytest

from sapa.http.errors import Invalid
from sapa.messaging.sending.drafts import check_url


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example/a.jpg", "http://shop.example:8080/a?b=c#d", "HTTPS://SHOP.EXAMPLE/", "https://8.8.8.8/a",
        "https://münchen.example/ü.jpg", "https://[2606:4700::1]/a",
    ],
)  # fmt: skip
def test_addresses_that_a_channel_can_fetch(url: str) -> None:
    assert check_url("mediaUrl", url) == url


@pytest.mark.parametrize(
    "url",
    [
        "", "a.jpg", "//shop.example/a", "https://", "ftp://a.example/a", "data:text/plain,x", "https://a b.example/",
        "https://user:secret@a.example/", "https://localhost/a", "https://x.localhost./a", "https://printer.local/a",
        "http://10.0.0.1/a", "http://[::1]/a", "http://169.254.169.254/latest", "http://[fe80::1%25eth0]/a",
        "http://2130706433/", "https://a.example\\@b.example/", "https://a.example:99999/", "https://a.example/\n",
        "https://[", "javascript:alert(1)",
    ],
)  # fmt: skip
def test_addresses_that_it_cannot(url: str) -> None:
    with pytest.raises(Invalid):
        check_url("mediaUrl", url)
