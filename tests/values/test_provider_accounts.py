"""Messages of providers and libraries never show an account's secrets."""

from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote

import pytest

from sapa.values.provider_accounts import mask_secrets

SECRET = "planted/secret+77 aa"
ACCOUNT = {"access_token": SECRET, "app_secret": "planted-other-88", "pin": "12", "unset": ""}


@pytest.mark.parametrize(
    "words",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        SECRET.replace("/", "%2F").replace("+", "%2B").replace(" ", "+"),
        b64encode(SECRET.encode()).decode(),
        urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
        b64encode(f"\0ayu@example.com\0{SECRET}".encode()).decode(),
        "token/" + b64encode(f"ayu:{SECRET}".encode()).decode(),
        f"{SECRET} and planted-other-88",
    ],
)
def test_a_secret_is_masked_however_it_was_sent(words: str) -> None:
    masked = mask_secrets(f"535 refused: {words} is wrong", ACCOUNT)
    assert masked.startswith("535 refused: ")
    assert masked.endswith(" is wrong")
    assert not any(part in masked for part in (words, SECRET, "planted"))


def test_the_password_of_an_address_is_masked() -> None:
    masked = mask_secrets("no route to https://ayu:planted@mail.example/in?x=1@2", {})
    assert masked == "no route to https://…@mail.example/in?x=1@2"


@pytest.mark.parametrize(
    "words", ["(190) The session expired on 12 March", "see https://example.com/help", "id wamid.HBgLNjI4MTIz=="]
)
def test_other_words_stay(words: str) -> None:
    assert mask_secrets(words, ACCOUNT) == words
