"""Credentials that every test environment has with every simulator."""

import hmac
import re

from sapa.context import AppContext
from sapa.values.sealing import SecretKeyMissing, split_keys

_parse = re.compile(r"sbx_(?P<company>[0-9]{1,18})_[0-9a-f]{32}", re.ASCII).fullmatch


def build_secret(context: AppContext, company_id: int, purpose: str) -> str:
    """A token, password or key: derived from the first secret key, unique per company and purpose."""
    return _derive(_list_keys(context)[0], company_id, purpose)


def find_company_id(context: AppContext, secret: str, purpose: str) -> int | None:
    """The company of a secret; None if it is not valid for the purpose. Secrets of every secret key are valid."""
    found = _parse(secret)
    if found is None:
        return None
    company_id = int(found["company"])
    valid = [_derive(key, company_id, purpose) for key in _list_keys(context)]
    return company_id if any(hmac.compare_digest(secret, each) for each in valid) else None


def _list_keys(context: AppContext) -> list[str]:
    if context.settings.secret_key is None:
        raise SecretKeyMissing
    return split_keys(context.settings.secret_key)


def _derive(key: str, company_id: int, purpose: str) -> str:
    mark = hmac.digest(key.encode(), f"sandbox/{company_id}/{purpose}".encode(), "sha256").hex()[:32]
    return f"sbx_{company_id}_{mark}"
