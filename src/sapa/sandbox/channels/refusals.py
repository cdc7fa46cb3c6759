"""The errors of WhatsApp's Cloud API that do not depend on what is wrong with a request's JSON: code by code."""

from collections.abc import Mapping

from msgspec import Struct

from sapa.sandbox.channels.graph_errors import GraphRefusal


class MetaError(Struct, frozen=True):
    """An error as Meta words it, and the status of a response with it."""

    status: int
    message: str
    details: str | None = None
    """The message, unless there is more to say."""
    subcode: int | None = None
    has_prefix: bool = True
    """Whether the message begins with the code."""


UNKNOWN_ERROR = MetaError(400, "Message failed to send")
SIGN_IN = "Error validating access token: "
ERRORS: Mapping[int, MetaError] = {
    1: MetaError(500, "An unknown error occurred", has_prefix=False),
    2: MetaError(503, "Service temporarily unavailable", has_prefix=False),
    3: MetaError(500, "Capability or permissions issue"),
    10: MetaError(403, "Application does not have permission for this action"),
    190: MetaError(401, f"{SIGN_IN}Session has expired", subcode=463, has_prefix=False),
    368: MetaError(403, "Temporarily blocked for policies violations"),
    80007: MetaError(400, "Too many calls were made for this WhatsApp Business account"),
    130429: MetaError(429, "Rate limit hit", "The number sent too many messages in a short time"),
    130472: MetaError(400, "User's number is part of an experiment"),
    130497: MetaError(403, "Business account is restricted from messaging users in this country"),
    131000: MetaError(500, "Something went wrong"),
    131005: MetaError(403, "Access denied"),
    131008: MetaError(400, "Required parameter is missing"),
    131009: MetaError(400, "Parameter value is not valid"),
    131016: MetaError(503, "Service unavailable"),
    131021: MetaError(400, "Recipient cannot be sender", "Sender and recipient phone numbers are the same"),
    131026: MetaError(400, "Message undeliverable"),
    131031: MetaError(403, "Business Account locked", "The account is locked: it violates a policy"),
    131042: MetaError(400, "Business eligibility payment issue", "The account's payment method has a problem"),
    131047: MetaError(
        400, "Re-engagement message", "More than 24 hours have passed since the recipient last replied to the number"
    ),
    131048: MetaError(400, "Spam rate limit hit", "Too many messages of this number were blocked or flagged as spam"),
    131049: MetaError(400, "This message was not delivered to maintain healthy ecosystem engagement"),
    131050: MetaError(400, "User has stopped marketing messages", "The recipient does not want marketing messages"),
    131051: MetaError(400, "Unsupported message type", "Message type is not currently supported"),
    131053: MetaError(400, "Media upload error"),
    131056: MetaError(
        400,
        "(Business Account, Consumer Account) pair rate limit hit",
        "Too many messages were sent to the same recipient in a short time",
    ),
    131057: MetaError(500, "Account in maintenance mode"),
    131062: MetaError(400, "Business-scoped user ID recipients are not supported for this message"),
    131064: MetaError(400, "Message classification limit hit"),
    132000: MetaError(400, "Number of parameters does not match the expected number of params"),
    132001: MetaError(404, "Template name does not exist in the translation"),
    133010: MetaError(400, "Account not registered", "The phone number is not registered"),
    135000: MetaError(400, "Generic user error"),
}
"""`template_checks`, `template_review` and `message_checks` have those that depend on a request."""


def get_error(code: int) -> MetaError:
    return ERRORS.get(code, UNKNOWN_ERROR)


def build_error(code: int, details: str | None = None) -> GraphRefusal:
    error = get_error(code)
    return GraphRefusal(
        code=code,
        message=error.message,
        details=details or error.details or error.message,
        subcode=error.subcode,
        status=error.status,
        has_prefix=error.has_prefix,
    )


def refuse_token(token: str) -> GraphRefusal:
    """No token, one that is not a token at all, or one that is not valid."""
    if not token:
        words, subcode = "An access token is required to request this resource.", None
    elif token.startswith("sbx_"):
        words, subcode = f"{SIGN_IN}The session is invalid", 467
    else:
        words, subcode = "Invalid OAuth access token - Cannot parse access token", None
    return GraphRefusal(code=190, message=words, subcode=subcode, status=401, has_prefix=False)


def refuse_object(method: str, id: str) -> GraphRefusal:
    """An object that does not exist, belongs to somebody else, or cannot do this."""
    reasons = "does not exist, cannot be loaded due to missing permissions, or does not support this operation"
    return GraphRefusal(
        code=100,
        message=f"Unsupported {method.lower()} request. Object with ID '{id}' {reasons}.",
        subcode=33,
        type="GraphMethodException",
        has_prefix=False,
    )


def require(parameter: str) -> GraphRefusal:
    return GraphRefusal(code=100, message=f"The parameter {parameter} is required.")
