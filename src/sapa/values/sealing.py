"""Secrets that are read back: encrypted with the installation's key, each bound to its company and its row."""

import base64
import binascii
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12
_KEY_BYTES = 32


class BadSecretKey(Exception):
    """A SAPA_SECRET_KEY that cannot be used, or that is not the one the secrets were sealed with."""


class Vault:
    """AES-256-GCM. A sealed secret that was moved to another company or row does not open."""

    def __init__(self, key: str) -> None:
        try:
            raw = base64.b64decode(key, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) != _KEY_BYTES:
            raise BadSecretKey(
                "SAPA_SECRET_KEY must be 32 random bytes in base64; create it with `openssl rand -base64 32`."
            )
        self._cipher = AESGCM(raw)

    def seal(self, secret: bytes, company_id: int, row: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, secret, _associated_data(company_id, row))

    def open(self, sealed: bytes, company_id: int, row: str) -> bytes:
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _associated_data(company_id, row))
        except InvalidTag:
            raise BadSecretKey("SAPA_SECRET_KEY is not the key that the stored secrets were sealed with.") from None


def _associated_data(company_id: int, row: str) -> bytes:
    return f"{company_id}/{row}".encode()
