"""The meaning of WhatsApp's error codes. Only codes decide: the texts change."""

from collections.abc import Mapping

from sapa.messaging.channels.interface import UNKNOWN_ERROR, ErrorMeaning
from sapa.messaging.channels.meta import GraphError

RETRY_SOON = 1.0
MINUTE = 60.0
PAIR_SECONDS = 6.0
DAY = 86_400.0
UNREADY = 10.0

_AUTH, _POLICY, _RECIPIENT = ErrorMeaning("auth"), ErrorMeaning("policy"), ErrorMeaning("recipient")
_VALIDATION, _TEMPLATE, _MEDIA = ErrorMeaning("validation"), ErrorMeaning("template"), ErrorMeaning("media")
_QUALITY, _CONFIG, _BILLING = ErrorMeaning("quality"), ErrorMeaning("config"), ErrorMeaning("billing")
_TEMPORARY = ErrorMeaning("temporary", UNREADY)

ERROR_MEANINGS: Mapping[int, ErrorMeaning] = {
    0: _AUTH,
    3: _AUTH,
    10: _AUTH,
    190: _AUTH,
    131005: _AUTH,
    100: _VALIDATION,
    33: _VALIDATION,
    4: ErrorMeaning("rate", MINUTE),
    80007: ErrorMeaning("rate", MINUTE),
    80008: ErrorMeaning("rate", MINUTE),
    130429: ErrorMeaning("rate", RETRY_SOON),
    131056: ErrorMeaning("rate", PAIR_SECONDS),
    131048: _QUALITY,
    131064: _QUALITY,
    131049: ErrorMeaning("quality", DAY),
    368: _POLICY,
    130497: _POLICY,
    131031: _POLICY,
    130472: _RECIPIENT,
    131026: _RECIPIENT,
    131062: _RECIPIENT,
    137000: _RECIPIENT,
    131047: ErrorMeaning("window"),
    131050: ErrorMeaning("consent"),
    131008: _VALIDATION,
    131009: _VALIDATION,
    131021: _VALIDATION,
    131051: _VALIDATION,
    131030: _CONFIG,
    131037: _CONFIG,
    131045: _CONFIG,
    133010: _CONFIG,
    131063: _CONFIG,
    131052: _MEDIA,
    131053: _MEDIA,
    132000: _TEMPLATE,
    132001: _TEMPLATE,
    132005: _TEMPLATE,
    132007: _TEMPLATE,
    132008: _TEMPLATE,
    132012: _TEMPLATE,
    132015: _TEMPLATE,
    132016: _TEMPLATE,
    132018: _TEMPLATE,
    132068: _TEMPLATE,
    132069: _TEMPLATE,
    131042: _BILLING,
    131044: _BILLING,
    1: _TEMPORARY,
    2: _TEMPORARY,
    131000: _TEMPORARY,
    131016: _TEMPORARY,
    131057: _TEMPORARY,
    135000: _TEMPORARY,
}


def classify(graph_error: GraphError) -> ErrorMeaning:
    """Do not retry a request with an unknown error code."""
    if 200 <= graph_error.code <= 299:
        return _AUTH
    return ERROR_MEANINGS.get(graph_error.code) or (_TEMPORARY if graph_error.is_transient else UNKNOWN_ERROR)
