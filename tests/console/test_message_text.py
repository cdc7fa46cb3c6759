"""What people wrote, as a page shows it."""

import pytest
from markupsafe import Markup

from sapa.console.message_text import mark_links

REL = 'rel="noreferrer noopener" target="_blank"'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Halo <b>kak</b>", "Halo &lt;b&gt;kak&lt;/b&gt;"),
        (
            "Lihat https://toko.example/a?b=1&c=2.",
            f'Lihat <a href="https://toko.example/a?b=1&amp;c=2" {REL}>https://toko.example/a?b=1&amp;c=2</a>.',
        ),
        ("https://x.id/Sapa_(kota)", f'<a href="https://x.id/Sapa_(kota)" {REL}>https://x.id/Sapa_(kota)</a>'),
        ("(HTTP://x.id/)", f'(<a href="HTTP://x.id/" {REL}>HTTP://x.id/</a>)'),
        ('https://x.id/"onclick="', f'<a href="https://x.id/" {REL}>https://x.id/</a>&#34;onclick=&#34;'),
        ("javascript:alert(1) ftp://x.id www.x.id https://", "javascript:alert(1) ftp://x.id www.x.id https://"),
    ],
)
def test_addresses_become_links_and_nothing_else_becomes_markup(text: str, shown: str) -> None:
    assert str(mark_links(text)) == shown


def test_the_rest_is_marked_and_addresses_are_not() -> None:
    shown = mark_links("@Sari https://x.id/@Sari", lambda _: Markup("<mark>@Sari</mark> "))
    assert str(shown).startswith(f'<mark>@Sari</mark> <a href="https://x.id/@Sari" {REL}>https://x.id/@Sari</a>')
