"""The secret key inside a backup, sealed with the operator's passphrase."""

import base64
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from sapa.backups.types import BackupFailed, Manifest

MIN_PASSPHRASE_LENGTH = 12
_SALT_BYTES = 16
_NONCE_BYTES = 12
_MEMORY_COST = 2**15
"""32 MiB and a tenth of a second for every guess."""


def seal_key(secret_key: str, passphrase: str) -> str:
    if len(passphrase) < MIN_PASSPHRASE_LENGTH:
        raise BackupFailed(f"The passphrase of a backup must have at least {MIN_PASSPHRASE_LENGTH} characters.")
    salt, nonce = os.urandom(_SALT_BYTES), os.urandom(_NONCE_BYTES)
    sealed = AESGCM(_derive(passphrase, salt)).encrypt(nonce, secret_key.encode(), None)
    return base64.b64encode(salt + nonce + sealed).decode()


def open_key(manifest: Manifest, passphrase: str) -> str:
    """SAPA_SECRET_KEY of the installation that the backup was made of."""
    return open_sealed(manifest.sealed_key, passphrase)


def open_sealed(text: str, passphrase: str) -> str:
    sealed = base64.b64decode(text)
    salt, nonce = sealed[:_SALT_BYTES], sealed[_SALT_BYTES : _SALT_BYTES + _NONCE_BYTES]
    try:
        opened = AESGCM(_derive(passphrase, salt)).decrypt(nonce, sealed[_SALT_BYTES + _NONCE_BYTES :], None)
    except InvalidTag:
        raise BackupFailed("The passphrase does not open the secret key in the backup.") from None
    return opened.decode()


def _derive(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=_MEMORY_COST, r=8, p=1).derive(passphrase.encode())
