"""Which messages unsubscribe people, and which do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.messaging.consents.types import ConsentSettings
from sapa.messaging.consents.words import START_WORDS, STOP_WORDS, build_reply, find_choice, normalise

NONE = ConsentSettings([], [], None, None, "subscribed")
OWN = ConsentSettings(["Jangan kirim", "ГОТОВО"], ["Mulai"], "Baik.", None, "subscribed")


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("STOP", "unsubscribe"),
        ("stop", "unsubscribe"),
        (" Stop. ", "unsubscribe"),
        ("*STOP*!!!", "unsubscribe"),
        ("STOP 🙏🏽", "unsubscribe"),
        ("“Stop,\u00a0promo”", "unsubscribe"),
        ("ＳＴＯＰ", "unsubscribe"),
        ("Batal   langganan\n", "unsubscribe"),
        ("berhenti", "unsubscribe"),
        ("UNSUBSCRIBE", "unsubscribe"),
        ("START", "subscribe"),
        ("start!", "subscribe"),
        ("Tolong stop", None),
        ("STOP PROMO DONG", None),
        ("Kapan buka? STOP", None),
        ("BERHENTILAH", None),
        ("S T O P", None),
        ("restart", None),
        ("🛑", None),
        ("", None),
        ("...", None),
        ("jangan kirim", None),
        ("mulai", None),
    ],
)
def test_only_a_whole_message_is_a_choice(text: str, choice: str | None) -> None:
    assert find_choice(text, NONE) == choice


@pytest.mark.parametrize(
    ("text", "choice"),
    [("JANGAN KIRIM!", "unsubscribe"), ("готово", "unsubscribe"), ("mulai", "subscribe"), ("STOP", "unsubscribe")],
)
def test_a_company_adds_words(text: str, choice: str) -> None:
    assert find_choice(text, OWN) == choice


@given(st.sampled_from(STOP_WORDS + START_WORDS), st.text("!?.,*_-—…\"'()\u200b \t\n🙏🛑", max_size=6), st.booleans())
def test_punctuation_and_case_do_not_matter(word: str, around: str, is_lower: bool) -> None:
    written = around + (word.lower() if is_lower else word.title()) + around[::-1]
    assert find_choice(written, NONE) == find_choice(word, NONE) is not None


@given(st.text(max_size=60))
def test_any_text_is_normalised_once(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_the_reply_is_the_companys_own_or_in_its_language() -> None:
    assert build_reply("unsubscribe", OWN, "en") == "Baik."
    assert "START" in build_reply("unsubscribe", NONE, "en")
    assert "START" in build_reply("unsubscribe", NONE, "id")
    assert build_reply("subscribe", OWN, "en") != build_reply("subscribe", OWN, "id")
