"""Which passwords are refused, and how many are hashed at once."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.people import passwords
from sapa.people.passwords import (
    LEET,
    MAX_CHARACTERS,
    MAX_HASHED_AT_ONCE,
    MAX_LEET,
    HashQueue,
    find_weakness,
    limit_leet,
    list_personal_words,
)
from sapa.people.types import SignInBusy, WeakPassword

PERSON = ["Toko Kopi Gayo", "budi.santoso@tokokopi.example", "Budi Santoso"]
GOOD = [
    "enam gajah minum teh",
    "correct horse battery",
    "kF9#vQ2!xT7m",
    "Tulisan tangan nenek di dapur",
    "my budi hates long ferry rides",
    "ぬるいおちゃをのむさるたち",
    "x7" * 3 + "qL!90pZr" + "w" * (MAX_CHARACTERS - 14),
]


@pytest.mark.parametrize("password", GOOD)
def test_a_few_words_of_one_s_own_will_do(password: str) -> None:
    assert find_weakness(password, PERSON) is None


@pytest.mark.parametrize(
    ("password", "reason"),
    [
        ("short", "must have 12 to 256 characters"),
        ("x" * 257, "must have 12 to 256 characters"),
        ("password1234", "is a common password"),
        ("Password123456", "is a common password"),
        ("p4ssw0rd1234!", "is a common password"),
        ("swordfish swordfish", "repeats itself"),
        ("Letmein!Letmein!", "repeats itself"),
        ("aaaaaaaaaaaa", "repeats itself"),
        ("abcdefghijklm", "is a sequence of letters or digits"),
        ("123456789012", "is a common password"),
        ("budi santoso 1990", "is made of your name"),
        ("BudiSantoso-TokoKopi-1!", "is made of your name"),
        ("santosobudi2024", "is made of your name"),
        ("tokokopi.example", "is made of your name"),
        ("Gayo!Gayo!Gayo!", "is made of your name"),
    ],
)
def test_common_and_personal_ones_are_refused_with_the_reason(password: str, reason: str) -> None:
    found = find_weakness(password, PERSON)
    assert found is not None
    assert found.startswith(reason)


def test_what_is_personal_for_one_is_fine_for_another() -> None:
    assert find_weakness("Wulandari Kencana 77", ["Wulandari Kencana"]) is not None
    assert find_weakness("Wulandari Kencana 77", PERSON) is None


def test_personal_words_are_those_of_names_and_addresses() -> None:
    assert list_personal_words(["Al Bo-Cah", "x_ana@shop.example"]) == ["example", "shop", "ana", "cah"]


@given(st.text(max_size=2 * MAX_CHARACTERS))
def test_any_text_is_judged(password: str) -> None:
    reason = find_weakness(password, PERSON)
    assert reason is None or reason.endswith(("words of your own", "characters"))


@given(st.text(alphabet=LEET + "a1~", max_size=72))
def test_the_estimator_gets_few_symbols_that_may_stand_for_letters(password: str) -> None:
    limited = limit_leet(password)
    assert len(limited) == len(password)
    assert len(set(limited) & set(LEET)) <= MAX_LEET
    assert all(ours == theirs or ours == "~" for ours, theirs in zip(limited, password, strict=True))


@pytest.mark.parametrize("shape", ["<a ", "a1!", "qwerty", "p@ssw0rd", "2024-01-01 ", "abcABC123", "\u202e", "é"])
def test_the_estimator_gets_no_more_than_it_can_judge_quickly(shape: str) -> None:
    """Its time grows with the cube of the length; longer texts make it raise ValueError."""
    assert find_weakness((shape * MAX_CHARACTERS)[:MAX_CHARACTERS], PERSON) is not None


async def test_a_weak_password_is_refused_in_the_form_s_words() -> None:
    with pytest.raises(WeakPassword, match=r"^password: is a common password; use a few words of your own$"):
        await HashQueue("test").check_strength("password1234", [])


async def test_a_hash_opens_with_its_password_only() -> None:
    queue = HashQueue("test")
    stored = await queue.hash("enam gajah minum teh")
    assert await queue.is_correct("enam gajah minum teh", stored)
    assert not await queue.is_correct("enam gajah minum kopi", stored)
    assert not await queue.is_correct("nobody has this password", None)


async def test_one_password_is_hashed_at_a_time_and_a_limited_number_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most = 0, 0
    go_on = threading.Event()

    def verify(password: str, stored: str | None) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        go_on.wait(30)
        running -= 1
        return True

    monkeypatch.setattr(passwords, "_verify", verify)
    queue, other = HashQueue("test"), HashQueue("other")

    async def sign_in(place: HashQueue) -> bool:
        with place.place():
            return await place.is_correct("x", "y")

    waiting = [asyncio.create_task(sign_in(queue)) for _ in range(MAX_HASHED_AT_ONCE)]
    await asyncio.sleep(0)
    with pytest.raises(SignInBusy) as refused:
        await sign_in(queue)
    assert refused.value.headers == {"retry-after": "5"}
    beside = asyncio.create_task(sign_in(other))
    go_on.set()
    assert await beside
    assert all(await asyncio.gather(*waiting))
    assert most <= 2  # one of each queue
    assert await sign_in(queue)
