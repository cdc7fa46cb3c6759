"""What the receiving mail server found out about the sender: its Authentication-Results (RFC 8601)."""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sapa.messaging.channels.interface import SenderAuthentication
from sapa.messaging.channels.mail.mime import MailPart

AUTHORITY = r"[0-9A-Za-z._:-]{1,253}"
MAX_RESULTS = 50
_METHODS = ("spf", "dkim", "dmarc")
_RESULTS = {"pass", "fail", "softfail", "neutral", "none", "policy", "temperror", "permerror"}
_find_result = re.compile(r"([a-z][a-z0-9-]{0,30})(?:/[0-9]{1,3})?\s*=\s*([a-z]{1,20})").match
_list_properties = re.compile(r"\s([a-z]{1,20}\.[a-z][a-z0-9-]{0,30})\s*=\s*([^\s;]{1,320})").findall
_CHARACTER = re.compile(r"\\.|[^\\]", re.DOTALL)
_is_plain = re.compile(r"[0-9a-z.@_+-]*").fullmatch


class MethodResult(Struct, frozen=True):
    method: str
    result: str
    properties: Mapping[str, str]


def list_results(mail: MailPart, authority: str) -> list[MethodResult]:
    """The results that the configured server wrote, the latest first. A header of any other server proves nothing:
    everybody can write one. The configured server removes headers that pretend to be its own."""
    found: list[MethodResult] = []
    for value in mail.list_raw("Authentication-Results") if authority else ():
        identifier, *results = _drop_foreign_text(value.lower()).split(";")
        if identifier.split()[:1] == [authority.lower()]:
            found += [each for result in results if (each := _parse_result(result.strip())) is not None]
    return found[:MAX_RESULTS]


def summarise(results: Sequence[MethodResult]) -> SenderAuthentication | None:
    """One result for each method; of several signatures, one that is valid counts."""
    if not results:
        return None
    return SenderAuthentication(*(_choose(results, method) for method in _METHODS))


def is_authentic(results: Sequence[MethodResult], domain: str) -> bool:
    """Whether the sender's domain is proven: by DMARC, or by a signature or a server of that domain."""
    domain = domain.lower()
    if any(each.method == "dmarc" and each.result == "fail" for each in results):
        return False
    return any(each.result == "pass" and _is_about(each, domain) for each in results)


def _choose(results: Sequence[MethodResult], method: str) -> str | None:
    words = [each.result for each in results if each.method == method]
    return "pass" if "pass" in words else next(iter(words), None)


def _is_about(result: MethodResult, domain: str) -> bool:
    match result.method:
        case "dmarc":
            return _is_within(result.properties.get("header.from", ""), domain)
        case "dkim":
            named = result.properties.get("header.d") or result.properties.get("header.i", "")
            return _is_within(named, domain)
        case "spf":
            return _is_within(result.properties.get("smtp.mailfrom", ""), domain)
    return False


def _is_within(name: str, domain: str) -> bool:
    found = name.rpartition("@")[2].strip("<>.")
    return found == domain or found.endswith("." + domain)


def _parse_result(text: str) -> MethodResult | None:
    found = _find_result(text)
    if found is None or found[1] not in _METHODS or found[2] not in _RESULTS:
        return None
    return MethodResult(found[1], found[2], dict(reversed(_list_properties(text))))


def _drop_foreign_text(value: str) -> str:
    """Without comments and quoted strings, which may be the sender's words, such as the first part of its address. Only
    a quoted string that could stand there without quotes is kept."""
    plain, quoted, depth = list[str](), None, 0
    for each in _CHARACTER.findall(value):
        if quoted is not None and each != '"':
            quoted.append(each)
        elif quoted is not None:
            plain.append(text if _is_plain(text := "".join(quoted)) else "")
            quoted = None
        elif each == '"' and not depth:
            quoted = list[str]()
        elif each == "(":
            depth += 1
        elif each == ")":
            depth -= depth > 0
        elif not depth:
            plain.append(each)
    return "".join(plain)
