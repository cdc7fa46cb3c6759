"""Checks for Schemathesis: every error has a documented code, and a valid request that gets a 400 has its reason here.

A document cannot say which ids exist or in which state a resource is: 404 and 409 say that of valid requests.
"""

import json
import re
from typing import Any

import schemathesis

REASONS: dict[str, list[str]] = {
    "Fields depend on each other.": [
        r"needs an email or a phoneNumber",
        r"cannot be combined with",
        r"contradicts \w+, which means the same",
        r"differs from inventorySku",
        r": is required(?:[,;:]| for| in)",
        r"^(?:sender|delivery|origin|destination)[.\w]*: is required$",
        r"must be absent",
        r"must be null for",
        r"must be (?:at most|more than) \d+(?: for|$)",
        r"must be false on this channel",
        r"must be an image on this channel",
        r"must not be after",
        r"must be .+, the (?:sum|currency|reward's) ",
        r"add up to a total that",
        r"^total: must be .+; correct it or leave it out$",
        r"mark only one address as main",
        r"needs the vehicleType",
        r"comes from the (?:carrier|product variant)",
        r"is set by the carrier",
        r"is not available at",
        r"can only be set to false",
        r"[Rr]epeats .+; send each",
        r"must not have the same id or title twice",
        r"must have at most \d+ rows in total",
        r"must have at most \d+ characters of text on",
        r"must not have parameters",
        r"must number its parameters",
        r"must be the (?:[\w-]+ )?id by which [\w ]+ knows",
        r"must be (?:\d+ to \d+|POSITIONAL|one button of the type otp) for",
        r"must be (?:after|from|1 to 90|alone on this channel|the only content|true: accept|a whole amount in)",
        r"must be more than 0(?:, unless|; leave it out)",
        r"must be image, video or product",
        r"\.type: must be one of (?:text|quick_reply)",
        r"must have (?:\d+ to \d+|at most \d+) (?:apps|buttons|cards|products|of the type)",
        r"must have (?:one (?:value|element) for each|one of flowId|productId and sections|no other button)",
        r"must have (?:all quick replies together|at most one parameter|text between two parameters|the same parts)",
        r"must have at least one line; cancel",
        r"must name (?:its parameters with|at most \d+ products)",
        r"must not (?:be before|be in the future|begin or end with a parameter|name a button twice|have empty values)",
        r"must not be more than .+, the prices? that",
        r"must not have line breaks",
        r"must be shorter: with them",
        r"must stay as it is while",
        r"may have one parameter",
        r"has too many parameters for its length",
        r"already has the opposite meaning",
        r"can only be set for a return",
        r"cannot be (?:collected by a return|set to .+ records a part)",
        r"copy_code is only for",
        r"belong together",
        r"is given twice",
        r"send either an amount or a",
        r"takes no value",
        r"has a rule already",
        r"has no (?:price|line items|labels)",
        r"\w+ cannot be imported from",
        r"is for (?:the source|CSV|customers|orders|products)",
        r"No column is mapped to",
        r"does not collect cash on delivery",
        r"^\w+ takes .+ in a message",
    ],
    "It names something that does not exist, or that is not for this.": [
        r"is (?:not )?the id of",
        r"is not an address of",
        r"does not belong to this product",
        r"must be the id of",
        r"must be another (?:agent|ticket)",
        r"must be ids of",
        r"must be a customer whom",
        r"must not be the company's own account",
        r"send the id of a variant that is on sale",
        r"has no list of",
        r"is not a (?:sub-district|city|cursor|province|district)",
        r"must be the `earlier` of a response",
        r"must not start with .+, which is reserved",
        r"is not a shipment$",
        r"must be one of .+; other channels",
        r"must be (?:the messageId2 of|a message that)",
        r"The mapping names",
        r"which the template does not have",
        r"cannot be searched yet",
        r"events?: .+ is unknown; use one of",
    ],
    "The form is more than a pattern can say.": [
        r"must be a phone number",
        r"must be an e-mail address",
        r"must be a country's ISO code",
        r"must be an ISO (?:4217|3166)",
        r"must be an ISO 8601 date-time",
        r"must be a (?:complete|public) URL",
        r"must be a postal code",
        r"must be a number, 0 or more",
        r"must be a whole number, because",
        r"must be more than 0 and at most",
        r"must have at most \d+ (?:digits|decimal places|bytes)",
        r"is too large to be exact",
        r"is too small a number",
        r"must be within the years 1 to 9999 in UTC",
        r"must not contain (?:spaces|a comma|a user name)",
        r"contains a space, a backslash or a control character; percent-encode it",
        r"must have 1 to \d+ printable characters",
        r"must not be (?:blank|empty)",
        r"must not (?:start or )?end with",
        r"must not have braces",
        r"has lat and lng swapped",
        r"must be in Indonesia",
        r"must be an IANA time zone|is not a time zone",
        r"must be (?:a data URL|a PNG, JPEG or WebP|the bytes of a picture|the name of an Android package)",
        r"must be a number from 0 to 100",
        r"must be CRM or one of",
        r"must contain letters or digits",
        r"must have at most \d+ KiB",
        r"is not an IP address or CIDR range",
    ],
    "It depends on the time.": [r"must be in the future", r"is in the past"],
    "The file's content is wrong.": [r"^The header has unknown columns", r"^The file "],
}
_is_explained = re.compile("|".join(pattern for patterns in REASONS.values() for pattern in patterns)).search


@schemathesis.check
def errors_are_documented_and_explained(_: Any, response: Any, case: Any) -> None:
    is_another_method = case.method.upper() != case.operation.method.upper()
    if response.status_code < 400 or not response.content or is_another_method:
        return
    error = json.loads(response.content)["error"]
    documented = _find_codes(case, response.status_code)
    assert documented is None or error["code"] in documented, f"{case.operation.label}: {error['code']} is undocumented"
    is_valid = case.meta is not None and case.meta.generation.mode.is_positive
    if is_valid and response.status_code == 400:
        assert _is_explained(error["message"]), f"{case.operation.label} refused a valid request: {error['message']}"


@schemathesis.hook
def filter_query(context: Any, query: dict[str, Any] | None) -> bool:
    """Without one value in place of a list, which is a list of one value on the wire."""
    parameters = context.operation.definition.raw.get("parameters", [])
    lists = {one["name"] for one in parameters if one.get("schema", {}).get("type") == "array"}
    return all(isinstance(value, list) for name, value in (query or {}).items() if name in lists)


def _find_codes(case: Any, status: int) -> list[str] | None:
    """The codes that the document lists for the status, if the operation has such a response."""
    schema = case.operation.schema.raw_schema
    path, method = case.operation.path, case.operation.method
    response = schema["paths"][path][method].get("responses", {}).get(str(status))
    if response is None:
        return None
    name = response.get("$ref", "").removeprefix("#/components/responses/")
    codes: list[str] = (schema["components"]["responses"][name] if name else response).get("x-sapa-codes")
    return codes
