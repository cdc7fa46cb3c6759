"""Secrets that are read back: encrypted with the installation's keys, each bound to its company and its row."""

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct

_NONCE_BYTES = 12
_KEY_BYTES = 32
_MARK = b"K1"
_ID_BYTES = 6
_HEADER_BYTES = len(_MARK) + _ID_BYTES


class BadSecretKey(Exception):
    """A SAPA_SECRET_KEY that cannot be used, or that lacks the key that a secret was sealed with."""


class SecretKeyMissing(Exception):
    def __init__(self) -> None:
        super().__init__("This needs stored secrets. The operator must set SAPA_SECRET_KEY.")


class SealedValue(Struct, frozen=True):
    """A stored value, for a rotation of the key."""

    position: str
    """Identifies it among the company's values in its table, and orders them."""
    bound_to: str
    sealed: bytes


class ResealedBatch(Struct, frozen=True):
    """A batch of values of one company and table."""

    sealed: Mapping[str, bytes]
    """The new values by position, without those that the current key had sealed already."""
    unreadable: int
    """Values that no key opens. They stay as they are."""
    last: str
    """The position of the last value; empty if there is none."""


class Vault:
    """AES-256-GCM. A sealed secret that was moved to another company or row does not open.

    The first key seals, all keys open. A sealed secret begins with the id of its key; one of an earlier version does
    not, and is tried with every key.
    """

    def __init__(self, keys: str) -> None:
        self._ciphers = {_build_header(raw): AESGCM(raw) for raw in map(_decode, split_keys(keys))}
        self._header = next(iter(self._ciphers))

    @property
    def key_id(self) -> str:
        """The id of the key that seals."""
        return self._header.removeprefix(_MARK).hex()

    def is_current(self, sealed: bytes) -> bool:
        """Whether the secret was sealed with the key that seals now."""
        return sealed.startswith(self._header)

    def seal(self, secret: bytes, company_id: int, row: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return self._header + nonce + self._ciphers[self._header].encrypt(nonce, secret, _bind(company_id, row))

    def open(self, sealed: bytes, company_id: int, row: str) -> bytes:
        bound = _bind(company_id, row)
        cipher = self._ciphers.get(sealed[:_HEADER_BYTES])
        if cipher is not None and (secret := _decrypt(cipher, sealed[_HEADER_BYTES:], bound)) is not None:
            return secret
        for cipher in self._ciphers.values():
            if (secret := _decrypt(cipher, sealed, bound)) is not None:
                return secret
        raise BadSecretKey("SAPA_SECRET_KEY lacks the key that a stored secret was sealed with. Add it after a comma.")

    def reseal(self, values: Sequence[SealedValue], company_id: int) -> ResealedBatch:
        """Seals with the current key what another key has sealed."""
        sealed: dict[str, bytes] = {}
        unreadable = 0
        for value in values:
            if self.is_current(value.sealed):
                continue
            try:
                secret = self.open(value.sealed, company_id, value.bound_to)
            except BadSecretKey:
                unreadable += 1
            else:
                sealed[value.position] = self.seal(secret, company_id, value.bound_to)
        return ResealedBatch(sealed, unreadable, values[-1].position if values else "")


class ProbeVault(Vault):
    """Opens what a rotation would seal anew, and leaves it as it is: shows whether the keys open everything."""

    opened = 0
    unreadable = 0

    def reseal(self, values: Sequence[SealedValue], company_id: int) -> ResealedBatch:
        unreadable = sum(not self._opens(value, company_id) for value in values)
        self.opened += len(values) - unreadable
        self.unreadable += unreadable
        return ResealedBatch({}, unreadable, values[-1].position if values else "")

    def _opens(self, value: SealedValue, company_id: int) -> bool:
        try:
            self.open(value.sealed, company_id, value.bound_to)
        except BadSecretKey:
            return False
        return True


def split_keys(text: str) -> list[str]:
    """The keys of SAPA_SECRET_KEY; at least one, which may be empty."""
    return [key.strip() for key in text.split(",") if key.strip()] or [""]


def list_key_ids(text: str) -> list[str]:
    """The ids of the keys of SAPA_SECRET_KEY."""
    return [_build_header(_decode(key)).removeprefix(_MARK).hex() for key in split_keys(text)]


def _decode(key: str) -> bytes:
    try:
        raw = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != _KEY_BYTES:
        raise BadSecretKey(
            "SAPA_SECRET_KEY must be 32 random bytes in base64; create it with `openssl rand -base64 32`. Separate"
            " several keys with commas."
        )
    return raw


def _build_header(raw: bytes) -> bytes:
    return _MARK + sha256(b"sapa key id/" + raw).digest()[:_ID_BYTES]


def _decrypt(cipher: AESGCM, sealed: bytes, bound: bytes) -> bytes | None:
    try:
        return cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound)
    except (InvalidTag, ValueError):  # ValueError: shorter than a nonce
        return None


def _bind(company_id: int, row: str) -> bytes:
    return f"{company_id}/{row}".encode()
