"""Sealed secrets."""

import base64
import os

import pytest

from sapa.values.sealing import BadSecretKey, Vault

KEY = base64.b64encode(bytes(range(32))).decode()


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


@pytest.mark.parametrize("key", ["", "short", base64.b64encode(bytes(31)).decode(), "ä" * 44, "!" * 44])
def test_an_invalid_key_is_refused_with_advice(key: str) -> None:
    with pytest.raises(BadSecretKey, match="openssl rand"):
        Vault(key)
