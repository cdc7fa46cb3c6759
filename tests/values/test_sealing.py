"""Sealed secrets."""

import base64
import os

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sapa.values.sealing import BadSecretKey, SealedValue, Vault

RAW = bytes(range(32))
KEY = base64.b64encode(RAW).decode()
OTHER, THIRD = (base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))


def seal_as_before(raw: bytes, secret: bytes, company_id: int, row: str) -> bytes:
    """As versions did that had one key."""
    nonce = os.urandom(12)
    return nonce + AESGCM(raw).encrypt(nonce, secret, f"{company_id}/{row}".encode())


def test_a_secret_opens_where_it_was_sealed() -> None:
    vault = Vault(KEY)
    assert Vault(KEY).open(vault.seal(b"whsec_1", 7, "whe_1"), 7, "whe_1") == b"whsec_1"


def test_no_two_seals_are_alike_and_none_shows_the_secret() -> None:
    vault = Vault(KEY)
    first, second = vault.seal(b"whsec_1", 7, "whe_1"), vault.seal(b"whsec_1", 7, "whe_1")
    assert first != second
    assert b"whsec" not in first


@pytest.mark.parametrize(("company_id", "row"), [(8, "whe_1"), (7, "whe_2")])
def test_a_secret_moved_to_another_row_does_not_open(company_id: int, row: str) -> None:
    vault = Vault(KEY)
    with pytest.raises(BadSecretKey):
        vault.open(vault.seal(b"whsec_1", 7, "whe_1"), company_id, row)


def test_a_changed_secret_does_not_open() -> None:
    vault = Vault(KEY)
    sealed = bytearray(vault.seal(b"whsec_1", 7, "whe_1"))
    sealed[-1] ^= 1
    with pytest.raises(BadSecretKey):
        vault.open(bytes(sealed), 7, "whe_1")


def test_another_key_says_which_variable_is_wrong() -> None:
    sealed = Vault(KEY).seal(b"whsec_1", 7, "whe_1")
    other = Vault(base64.b64encode(os.urandom(32)).decode())
    with pytest.raises(BadSecretKey, match="SAPA_SECRET_KEY"):
        other.open(sealed, 7, "whe_1")


@pytest.mark.parametrize(
    "key", ["", ",", f"{KEY},short", "short", base64.b64encode(bytes(31)).decode(), "ä" * 44, "!" * 44]
)
def test_an_invalid_key_is_refused_with_advice(key: str) -> None:
    with pytest.raises(BadSecretKey, match="openssl rand"):
        Vault(key)


def test_the_first_key_seals_and_all_open() -> None:
    old, both, new = Vault(KEY), Vault(f"{OTHER}, {KEY}"), Vault(OTHER)
    assert both.open(old.seal(b"whsec_1", 7, "whe_1"), 7, "whe_1") == b"whsec_1"
    assert new.open(both.seal(b"whsec_1", 7, "whe_1"), 7, "whe_1") == b"whsec_1"
    with pytest.raises(BadSecretKey, match="Add it after a comma"):
        old.open(both.seal(b"whsec_1", 7, "whe_1"), 7, "whe_1")


def test_a_sealed_secret_names_its_key() -> None:
    old, new = Vault(KEY), Vault(f"{OTHER},{KEY}")
    sealed = old.seal(b"whsec_1", 7, "whe_1")
    assert bytes.fromhex(old.key_id) in sealed[:8]
    assert old.key_id != new.key_id
    assert (old.is_current(sealed), new.is_current(sealed)) == (True, False)


def test_a_secret_of_an_earlier_version_opens_with_any_key() -> None:
    sealed = seal_as_before(RAW, b"whsec_1", 7, "whe_1")
    for keys in (KEY, f"{KEY},{OTHER}", f"{OTHER},{THIRD},{KEY}"):
        assert Vault(keys).open(sealed, 7, "whe_1") == b"whsec_1"
    assert not Vault(KEY).is_current(sealed)
    with pytest.raises(BadSecretKey):
        Vault(f"{OTHER},{THIRD}").open(sealed, 7, "whe_1")


def test_a_secret_of_an_earlier_version_opens_even_if_it_looks_like_a_newer_one() -> None:
    vault = Vault(KEY)
    nonce = vault.seal(b"", 7, "x")[:8] + bytes(4)
    sealed = nonce + AESGCM(RAW).encrypt(nonce, b"whsec_1", b"7/whe_1")
    assert vault.open(sealed, 7, "whe_1") == b"whsec_1"


@pytest.mark.parametrize("sealed", [b"", b"K1", b"short", bytes(11), bytes(12), bytes(40)])
def test_what_was_never_sealed_does_not_open(sealed: bytes) -> None:
    with pytest.raises(BadSecretKey):
        Vault(KEY).open(sealed, 7, "whe_1")


def test_values_are_resealed_with_the_first_key() -> None:
    old, both, new = Vault(KEY), Vault(f"{OTHER},{KEY}"), Vault(OTHER)
    values = [
        SealedValue("a", "row a", old.seal(b"one", 7, "row a")),
        SealedValue("b", "row b", both.seal(b"two", 7, "row b")),
        SealedValue("c", "row c", Vault(THIRD).seal(b"three", 7, "row c")),
        SealedValue("d", "row d", seal_as_before(RAW, b"four", 7, "row d")),
    ]
    batch = both.reseal(values, 7)
    assert (list(batch.sealed), batch.unreadable, batch.last) == (["a", "d"], 1, "d")
    assert [new.open(batch.sealed[name], 7, f"row {name}") for name in "ad"] == [b"one", b"four"]
