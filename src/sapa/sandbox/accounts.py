"""Credentials that every test environment has with every simulator."""

import hmac
import re
from hashlib import sha256

from sapa.context import AppContext, SecretKeyMissing

_parse = re.compile(r"sbx_(?P<company>[0-9]{1,18})_[0-9a-f]{32}", re.ASCII).fullmatch


def build_secret(context: AppContext, company_id: int, purpose: str) -> str:
    """A token, password or key: derived, unique per company and purpose."""
    key = context.settings.secret_key
    if key is None:
        raise SecretKeyMissing
    mark = hmac.new(key.encode(), f"sandbox/{company_id}/{purpose}".encode(), sha256).hexdigest()[:32]
    return f"sbx_{company_id}_{mark}"


def find_company_id(context: AppContext, secret: str, purpose: str) -> int | None:
    """The company of a secret; None if it is not valid for the purpose."""
    found = _parse(secret)
    if found is None:
        return None
    company_id = int(found["company"])
    is_right = hmac.compare_digest(secret, build_secret(context, company_id, purpose))
    return company_id if is_right else None
