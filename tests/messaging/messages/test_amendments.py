"""Edits, deletions and reactions: their order of arrival does not matter."""

import random
from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sapa.messaging.channels.interface import MessageAmendment
from sapa.messaging.messages.amendments import apply_amendment
from sapa.messaging.messages.types import AmendableMessage, MessageParty, MessageReaction

START = datetime(2026, 3, 1, tzinfo=UTC)
ORIGINAL = AmendableMessage("m", "in", "satu", None, None, None)

Step = tuple[MessageAmendment, MessageParty]


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    """Each at an instant of its own, as far as people are concerned."""
    kinds = draw(st.lists(st.sampled_from(["edit", "revoke", "reaction"]), max_size=8))
    texts = st.none() | st.sampled_from(["dua", "tiga", "👍", "❤"])
    return [
        (
            MessageAmendment(kind, "wamid", START + timedelta(seconds=second), draw(texts)),  # type: ignore[arg-type]
            draw(st.sampled_from(["customer", "company"])),
        )
        for second, kind in enumerate(kinds)
    ]


def apply_all(changes: list[Step]) -> AmendableMessage:
    message = ORIGINAL
    for amendment, party in changes:
        message = apply_amendment(message, amendment, party, amendment.at)
    return message


@given(steps(), st.randoms(use_true_random=False))
def test_any_order_with_repetitions_ends_in_the_same_state(changes: list[Step], chance: random.Random) -> None:
    expected = apply_all(changes)
    shuffled = changes * 2
    chance.shuffle(shuffled)
    assert apply_all(shuffled) == expected


def test_the_newest_edit_and_the_newest_reactions_count() -> None:
    def at(second: int) -> datetime:
        return START + timedelta(seconds=second)

    message = apply_all(
        [
            (MessageAmendment("edit", "w", at(2), "tiga"), "customer"),
            (MessageAmendment("edit", "w", at(1), "dua"), "customer"),
            (MessageAmendment("reaction", "w", at(3), "👍"), "customer"),
            (MessageAmendment("reaction", "w", at(4), None), "customer"),
            (MessageAmendment("reaction", "w", at(4), "❤"), "company"),
            (MessageAmendment("revoke", "w", at(6)), "customer"),
            (MessageAmendment("revoke", "w", at(5)), "customer"),
        ]
    )
    assert (message.body, message.edited_at, message.revoked_at) == ("tiga", at(2), at(5))
    reactions = msgspec.json.decode(message.reactions or b"", type=list[MessageReaction])
    assert [(one.by, one.emoji) for one in reactions] == [("company", "❤"), ("customer", None)]
