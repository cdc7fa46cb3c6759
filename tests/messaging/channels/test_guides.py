"""Each channel has a page with the steps to connect a real account. They are those of today's code."""

import re
from pathlib import Path

import pytest

from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.channels.whatsapp.account_callbacks import ACCOUNT_FIELDS
from sapa.messaging.channels.whatsapp.callbacks import MESSAGE_FIELDS
from sapa.messaging.channels.whatsapp.template_callbacks import TEMPLATE_FIELDS

GUIDES = Path(__file__).parents[3] / "docs" / "channels"
PAGES = {
    Source.MSGAPP_CLOUD: "whatsapp",
    Source.MSGAPP_COEX: "whatsapp",
    Source.SOCIAL_NETWORK: "messenger",
    Source.PHOTO_SOCIAL: "instagram",
    Source.SHORT_VIDEO: "tiktok",
    Source.MAIL: "mail",
    Source.WIDGET: "web-chat",
}


def read_guide(source: Source) -> str:
    return (GUIDES / f"{PAGES[source]}.md").read_text()


@pytest.mark.parametrize("source", Source)
def test_the_page_of_a_channel_has_every_field_of_its_account(source: Source) -> None:
    guide = read_guide(source)
    assert f"--source {source}" in guide
    assert [field.name for field in CHANNELS[source].fields if f"`{field.name}`" not in guide] == []


@pytest.mark.parametrize("source", Source)
def test_its_command_sets_fields_that_the_channel_has(source: Source) -> None:
    names = {field.name for field in CHANNELS[source].fields}
    assert {name for name in re.findall(r"--set (\w+)=", read_guide(source)) if name not in names} == set()


@pytest.mark.parametrize("page", sorted(set(PAGES.values())))
def test_each_page_ends_with_the_test_of_the_connection(page: str) -> None:
    last = (GUIDES / f"{page}.md").read_text().rstrip().splitlines()[-3:]
    sources = [source for source, name in PAGES.items() if name == page]
    assert last == ["```console", f"$ sapa channel test --company ID --source {sources[0]}", "```"]


def test_the_page_of_whatsapp_subscribes_to_everything_that_is_read() -> None:
    guide = read_guide(Source.MSGAPP_CLOUD)
    fields = {*MESSAGE_FIELDS, *TEMPLATE_FIELDS, *ACCOUNT_FIELDS}
    assert {field for field in fields if f"`{field}`" not in guide} == set()
