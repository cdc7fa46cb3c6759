import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any, Generic, Literal, TypeVar

import httpx
import pytest
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.domains import ROUTES
from sapa.events import CATALOGUE, EVENT_ID, Event
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Conflict, Unauthorized
from sapa.http.openapi import build_document
from sapa.http.responses import Created, Page, StoredJson
from sapa.http.schemas import DocumentedAs, SchemaRegistry, build_example
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind
from sapa.webhooks.signing import build_headers, new_secret
from tests.conftest import TLS, Installation
from tests.http.response_check import Schema, document_of, resolve, validator

PARCEL_ID = IdKind("pcl_")
ParcelId = Annotated[str, PARCEL_ID]
Item = TypeVar("Item")
NOTHING = {"type": "null"}


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Sticker(Struct, forbid_unknown_fields=True):
    text: str


class Point(Struct, kw_only=True):
    lat: float
    note: str | None = None


class Parcel(Struct, rename="camel"):
    """Something on its way."""

    id: ParcelId
    fee: Decimal
    sent_at: datetime
    size: Size
    where: Point | None
    stickers: Annotated[Raw, StoredJson(list[Sticker])]
    note: Annotated[str | None, Meta(examples=["fragile"])] = None


Layer = Annotated[Literal["top", "bottom"], EnumName("ParcelLayer")]


class ParcelIn(Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A parcel to send."""

    fee: Decimal
    where: Point
    stickers: list[Sticker] = []
    size: Size = Size.SMALL
    paid: Annotated[bool, Meta(description="Whether somebody paid.")] = False
    layer: Layer | None = None
    note: Annotated[str, Meta(max_length=20)] | None | UnsetType = UNSET


class ParcelsQuery(Struct, kw_only=True, rename="camel"):
    sent_from: Annotated[datetime, Meta(tz=True, description="Sent then or later.")] | None = None
    speed: Literal["fast", "slow"] | None = None
    layer: Annotated[Layer, Meta(description="Only in this layer.")] | None = None
    size: Size | None = None
    paid: Literal["true", "false"] = "false"
    carrier: Annotated[str, Meta(max_length=5), DocumentedAs(Size)] | None = None
    tags: list[str] | None = None


class Pair(Struct, Generic[Item]):
    left: Item
    right: Item


class ParcelLost(Conflict):
    """The parcel is lost."""

    code = "PARCEL_LOST"


def validate(document: object) -> None:
    """By a validator that takes two seconds to import: only the process that runs these tests does."""
    import_module("openapi_spec_validator").OpenAPIV31SpecValidator(document).validate()


def declare_parcels() -> Routes:
    routes = Routes("/parcels", base=Base.MESSAGING, tag="Parcels", product="CRM", refusal=Unauthorized)

    @routes.get("", scope="orders:READ")
    async def list_parcels(call: Call, query: ParcelsQuery) -> Page[Parcel]:
        """List parcels."""
        raise AssertionError

    @routes.post("", scope="orders:WRITE")
    async def send_parcel(call: Call, body: ParcelIn) -> Parcel:
        """Send a parcel.

        It leaves `today`.
        """
        raise AssertionError

    @routes.put("/{parcelId}", scope="orders:WRITE", raises=[ParcelLost])
    async def replace_parcel(call: Call, parcel_id: ParcelId, body: ParcelIn) -> Parcel | Created[Parcel]:
        """Replace a parcel."""
        raise AssertionError

    @routes.delete("/{parcelId}", scope="orders:DELETE")
    async def drop_parcel(call: Call, parcel_id: ParcelId) -> None:
        """Drop a parcel."""
        raise AssertionError

    return routes


@pytest.fixture(scope="module")
def parcels() -> Schema:
    return build_document(Base.MESSAGING, "https://sapa.example.com", [declare_parcels()]).content


@pytest.mark.parametrize("base", [pytest.param(Base.CUSTOMER, marks=pytest.mark.long), Base.MESSAGING])
async def test_the_served_document_is_a_valid_openapi_3_1_document(installation: Installation, base: Base) -> None:
    async with httpx.AsyncClient(verify=TLS, timeout=120) as client:
        answer = await client.get(f"{installation.address}{base}/openapi.json")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == build_document(base, installation.address, ROUTES).content
    assert answer.json()["openapi"] == "3.1.0"
    assert answer.json()["info"]["version"] == "1.0.0"
    assert answer.json()["servers"] == [{"url": f"{installation.address}{base}"}]
    validate(answer.json())


def test_a_document_of_other_shapes_is_valid_too(parcels: Schema) -> None:
    validate(parcels)


@pytest.mark.parametrize("base", Base)
def test_every_example_is_valid_against_its_schema(base: Base) -> None:
    check_examples(document_of(base))


def test_examples_made_of_types_alone_are_valid_too(parcels: Schema) -> None:
    check_examples(parcels)


def check_examples(document: Schema) -> None:
    found = list(examples_in(document))
    assert found
    for schema, example in found:
        errors = [error.message for error in validator(document, schema).iter_errors(example)]
        assert not errors, (example, errors)


def examples_in(node: Any) -> Iterator[tuple[Schema, Any]]:
    if isinstance(node, list):
        for child in node:
            yield from examples_in(child)
    if not isinstance(node, dict):
        return
    if "schema" in node:
        yield from ((node["schema"], node[word]) for word in ("example",) if word in node)
        yield from ((node["schema"], example["value"]) for example in node.get("examples", {}).values())
    if isinstance(node.get("examples"), list):
        yield from ((node, example) for example in node["examples"])
    for word, child in node.items():
        if word not in {"example", "examples"}:
            yield from examples_in(child)


@pytest.mark.parametrize("base", Base)
def test_every_declared_endpoint_is_an_operation_with_examples(base: Base) -> None:
    document = document_of(base)
    declared = [endpoint for routes in ROUTES if routes.base == base for endpoint in routes.endpoints]
    for endpoint in declared:
        operation = document["paths"][endpoint.path][endpoint.method.lower()]
        assert operation["operationId"] == endpoint.handler.__name__
        assert operation["x-sapa-scope"] == endpoint.scope
        assert f"`{endpoint.scope}`" in operation["description"]
        assert operation["summary"]
        body = operation.get("requestBody", {"content": {}})["content"]
        assert all("example" in media for type, media in body.items() if type == "application/json")
    assert sum(len(methods) for methods in document["paths"].values()) == len(declared)


def test_the_key_is_required_everywhere() -> None:
    document = document_of(Base.CUSTOMER)
    assert document["security"] == [{"apiKey": []}]
    scheme = document["components"]["securitySchemes"]["apiKey"]
    assert (scheme["type"], scheme["in"], scheme["name"]) == ("apiKey", "header", "x-api-key")


def test_fields_are_described_as_the_wire_has_them(parcels: Schema) -> None:
    fields = parcels["components"]["schemas"]["Parcel"]["properties"]
    assert fields["id"]["pattern"] == PARCEL_ID.pattern
    assert fields["id"]["examples"] == [PARCEL_ID.example]
    assert fields["fee"] == {"type": "number"}
    assert fields["sentAt"].items() >= {"type": "string", "format": "date-time"}.items()
    assert fields["size"] == {"$ref": "#/components/schemas/Size"}
    assert parcels["components"]["schemas"]["Size"]["enum"] == ["large", "small"]
    assert fields["stickers"] == {"type": "array", "items": {"$ref": "#/components/schemas/Sticker"}}
    assert fields["note"] == {"type": ["string", "null"], "examples": ["fragile"]}


def test_what_we_send_has_all_its_fields(parcels: Schema) -> None:
    parcel = parcels["components"]["schemas"]["Parcel"]
    assert parcel["required"] == [*parcel["properties"]]
    assert parcels["components"]["schemas"]["ErrorBody"]["required"] == ["code", "message"]


def test_a_request_may_leave_out_fields_with_a_default(parcels: Schema) -> None:
    value = parcels["components"]["schemas"]["ParcelIn"]
    assert value["required"] == ["fee", "where"]
    assert value["additionalProperties"] is False
    assert value["properties"]["note"]["type"] == ["string", "null"]


def test_a_request_s_defaults_are_words_because_generators_would_require_the_field(parcels: Schema) -> None:
    fields = parcels["components"]["schemas"]["ParcelIn"]["properties"]
    assert fields["size"] == {
        "description": "Default: `small`.",
        "examples": ["small"],
        "$ref": "#/components/schemas/Size",
    }
    assert fields["paid"]["description"] == "Whether somebody paid. Default: `false`."
    documents = [parcels, *(document_of(base) for base in Base)]
    objects = [schema for document in documents for schema in document["components"]["schemas"].values()]
    assert not [field for schema in objects for field in schema.get("properties", {}).values() if "default" in field]


def test_a_named_literal_is_a_component_in_both_directions(parcels: Schema) -> None:
    schemas = parcels["components"]["schemas"]
    layer = {"$ref": "#/components/schemas/ParcelLayer"}
    assert schemas["ParcelLayer"] == {"enum": ["bottom", "top"], "type": "string"}
    assert schemas["ParcelIn"]["properties"]["layer"] == {"anyOf": [layer, {"type": "null"}]}
    assert parameters_of(parcels, "/parcels")["layer"]["schema"] == layer


def test_a_value_with_several_spellings_is_documented_with_one(parcels: Schema) -> None:
    assert parameters_of(parcels, "/parcels")["carrier"]["schema"] == {"$ref": "#/components/schemas/Size"}


def test_one_resource_is_answered_in_a_named_envelope(parcels: Schema) -> None:
    answer = parcels["paths"]["/parcels"]["post"]["responses"]["201"]["content"]["application/json"]
    assert answer["schema"] == {"$ref": "#/components/schemas/ParcelEnvelope"}
    envelope = parcels["components"]["schemas"]["ParcelEnvelope"]
    assert envelope["properties"] == {"data": {"$ref": "#/components/schemas/Parcel"}}
    assert envelope["required"] == ["data"]


def parameters_of(document: Schema, path: str) -> dict[str, Schema]:
    return {parameter["name"]: parameter for parameter in document["paths"][path]["get"]["parameters"]}


@pytest.mark.parametrize("base", Base)
def test_every_enum_has_a_type_a_name_and_one_spelling_per_value(base: Base) -> None:
    """Generators need all three: they make a class of an enum and a constant of each value."""
    document = document_of(base)
    schemas = document["components"]["schemas"]
    for place, schema in enums_in({"paths": document["paths"], "components": {"schemas": schemas}}, ""):
        assert "type" in schema, place
        assert len({str(value).lower() for value in schema["enum"]}) == len(schema["enum"]), place
        is_named = place.removeprefix("/components/schemas/") in schemas
        assert is_named or len(schema["enum"]) == 1, place


def enums_in(node: Any, place: str) -> Iterator[tuple[str, Schema]]:
    if isinstance(node, list):
        for number, child in enumerate(node):
            yield from enums_in(child, f"{place}/{number}")
    if not isinstance(node, dict):
        return
    if isinstance(node.get("enum"), list):
        yield place, node
    for word, child in node.items():
        if word not in {"example", "examples"}:
            yield from enums_in(child, f"{place}/{word}")


@pytest.mark.parametrize("base", Base)
def test_every_source_is_an_enum(base: Base) -> None:
    schemas = document_of(base)["components"]["schemas"]
    fields = [item for schema in schemas.values() for item in schema.get("properties", {}).items()]
    sources = [schema for name, schema in fields if re.fullmatch(r"(.*_)?sources?|.*Source", name)]
    assert sources
    for schema in sources:
        options = [option for option in schema.get("anyOf", [schema]) if option != NOTHING]
        names = [option.get("items", option)["$ref"].removeprefix("#/components/schemas/") for option in options]
        assert all("enum" in schemas[name] for name in names), schema


@pytest.mark.parametrize("base", Base)
def test_every_body_is_a_named_schema(base: Base) -> None:
    """Generators make up a name for any other, such as one from the operation and the status."""
    for path, methods in document_of(base)["paths"].items():
        for method, operation in methods.items():
            bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
            media = [body.get("content", {}).get("application/json") for body in bodies]
            assert all([*one["schema"]] == ["$ref"] for one in media if one), f"{method} {path}"


@pytest.mark.parametrize("base", Base)
def test_the_document_says_whom_to_ask_under_which_licence_and_what_each_tag_is(base: Base) -> None:
    document = build_document(base, "https://sapa.example.com", ROUTES).content
    assert document["info"]["contact"] == {
        "name": "The operator of this installation",
        "url": "https://sapa.example.com",
    }
    assert document["info"]["license"]["identifier"] == "Apache-2.0"
    assert [tag["name"] for tag in document["tags"] if not tag["description"]] == []


def test_a_type_that_differs_by_direction_has_two_names_and_one_that_does_not_has_one(parcels: Schema) -> None:
    schemas = parcels["components"]["schemas"]
    assert schemas["Point"]["required"] == ["lat", "note"]
    assert schemas["PointIn"]["required"] == ["lat"]
    assert schemas["ParcelIn"]["properties"]["where"] == {"$ref": "#/components/schemas/PointIn"}
    assert "StickerIn" not in schemas


def test_generic_types_have_readable_names() -> None:
    schemas = SchemaRegistry()
    assert schemas.describe_response(Pair[Sticker]) == {"$ref": "#/components/schemas/StickerPair"}
    assert schemas.components["StickerPair"]["properties"]["left"] == {"$ref": "#/components/schemas/Sticker"}


def test_two_types_of_one_name_are_refused() -> None:
    schemas = SchemaRegistry()
    schemas.describe_response(Sticker)
    with pytest.raises(TypeError, match="Sticker"):
        schemas.describe_response(type("Sticker", (Struct,), {"__annotations__": {"colour": str}}))


def test_two_handlers_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match="send_parcel"):
        build_document(Base.MESSAGING, "", [declare_parcels(), declare_parcels()])


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        ({"type": "string", "examples": ["a", "b"]}, "a"),
        ({"type": "integer", "default": 20}, 20),
        ({"type": "string", "enum": ["x", "y"]}, "x"),
        ({"type": ["string", "null"]}, None),
        ({"type": "string", "format": "date"}, "2026-01-31"),
        ({"type": "integer", "minimum": 7}, 7),
        ({"type": "array", "items": {"type": "boolean"}}, [False]),
        ({"type": "object", "properties": {"a": NOTHING, "b": NOTHING}, "required": ["b"]}, {"b": None}),
        ({"anyOf": [{"$ref": "#/components/schemas/Sticker"}, {"type": "null"}]}, {"text": "text"}),
    ],
)  # fmt: skip
def test_an_example_is_made_of_what_the_schema_says(schema: Schema, example: Any) -> None:
    sticker = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    assert build_example(schema, {"Sticker": sticker}) == example


def test_parameters_have_location_schema_and_required(parcels: Schema) -> None:
    value = {parameter["name"]: parameter for parameter in parcels["paths"]["/parcels"]["get"]["parameters"]}
    assert value["sentFrom"] == {
        "name": "sentFrom",
        "in": "query",
        "description": "Sent then or later.",
        "schema": {"type": "string", "format": "date-time"},
        "allowEmptyValue": True,
    }
    assert value["speed"]["schema"] == {"type": "string", "enum": ["fast", "slow"]}
    assert value["size"]["schema"] == {"$ref": "#/components/schemas/Size"}
    assert value["paid"]["schema"] == {"type": "boolean", "default": False}
    assert (value["tags"]["style"], value["tags"]["explode"]) == ("form", False)
    (id, once) = parcels["paths"]["/parcels/{parcelId}"]["delete"]["parameters"]
    assert (id["name"], id["in"], id["required"]) == ("parcelId", "path", True)
    assert (once["name"], once["in"]) == ("Idempotency-Key", "header")


@pytest.mark.parametrize(
    ("path", "method", "codes"),
    [
        ("/parcels", "get", {"400": {"VALIDATION_ERROR"}, "401": {"UNAUTHORIZED"}, "403": {"IP_NOT_ALLOWED"}}),
        ("/parcels", "post", {"409": {"IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_IN_PROGRESS"}, "408": {"REQUEST_TIMEOUT"},
                              "413": {"PAYLOAD_TOO_LARGE"}, "415": {"UNSUPPORTED_MEDIA_TYPE"}}),
        ("/parcels/{parcelId}", "put", {
            "404": {"NOT_FOUND"}, "409": {"PARCEL_LOST", "IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_IN_PROGRESS"}}),
        ("/parcels/{parcelId}", "delete", {
            "409": {"IDEMPOTENCY_IN_PROGRESS"}, "429": {"RATE_LIMIT_EXCEEDED"}, "500": {"INTERNAL_ERROR"},
            "503": {"SERVICE_UNAVAILABLE"}}),
    ],
)  # fmt: skip
def test_errors_are_listed_by_status_with_their_codes(
    parcels: Schema, path: str, method: str, codes: dict[str, set[str]]
) -> None:
    answers = parcels["paths"][path][method]["responses"]
    for status, expected in codes.items():
        answer = resolve(answers[status], parcels["components"])
        media = answer["content"]["application/json"]
        assert media["schema"] == {"$ref": "#/components/schemas/ErrorEnvelope"}
        assert set(answer["x-sapa-codes"]) == expected
        assert {example["value"]["error"]["code"] for example in media["examples"].values()} == expected


def test_an_operation_has_only_its_possible_responses(parcels: Schema) -> None:
    paths = parcels["paths"]
    assert not {"404", "409", "413"} & paths["/parcels"]["get"]["responses"].keys()
    assert {"200", "201"} <= paths["/parcels/{parcelId}"]["put"]["responses"].keys()
    assert "content" not in paths["/parcels/{parcelId}"]["delete"]["responses"]["204"]
    assert "413" not in paths["/parcels/{parcelId}"]["delete"]["responses"]


def test_the_needed_scope_is_described(parcels: Schema) -> None:
    operation = parcels["paths"]["/parcels"]["post"]
    assert (operation["x-sapa-scope"], operation["x-sapa-product"]) == ("orders:WRITE", "CRM")
    assert operation["summary"] == "Send a parcel."
    assert operation["description"] == ("It leaves `today`.\n\nNeeds the scope `orders:WRITE` and the product `CRM`.")


def test_a_creation_links_to_the_operations_on_what_it_created(parcels: Schema) -> None:
    links = parcels["paths"]["/parcels"]["post"]["responses"]["201"]["links"]
    assert links == {
        name: {"operationId": name, "parameters": {"parcelId": "$response.body#/data/id"}}
        for name in ("replace_parcel", "drop_parcel")
    }


def test_an_event_stands_in_the_document_that_it_declares() -> None:
    declared = {"kind": "conversation.opened", "resource_type": Parcel, "base": Base.MESSAGING, "__doc__": "Opened."}
    type("ConversationOpened", (Event,), declared)
    try:
        kinds = {base: build_document(base, "", []).content["webhooks"].keys() for base in Base}
    finally:
        del CATALOGUE["conversation.opened"]
    assert "conversation.opened" in kinds[Base.MESSAGING]
    assert "conversation.opened" not in kinds[Base.CUSTOMER]


@pytest.mark.parametrize("missing", ["kind", "resource_type", "base"])
def test_an_event_without_a_part_of_its_declaration_is_refused(missing: str) -> None:
    declared = {"kind": "conversation.opened", "resource_type": Parcel, "base": Base.MESSAGING}
    del declared[missing]
    with pytest.raises(TypeError, match=missing):
        type("ConversationOpened", (Event,), declared)
    assert "conversation.opened" not in CATALOGUE


def test_every_event_stands_in_one_document_with_its_body_and_headers() -> None:
    documents = {base: document_of(base)["webhooks"] for base in Base}
    assert sorted(kind for webhooks in documents.values() for kind in webhooks) == sorted(CATALOGUE)
    assert "customer.created" in documents[Base.CUSTOMER]
    for kind, item in documents[Base.CUSTOMER].items():
        headers = {parameter["name"]: parameter["schema"] for parameter in item["post"]["parameters"]}
        assert headers["User-Agent"]["const"] == "Service-Webhooks/1.0"
        assert headers["X-Service-Webhook-Event"]["const"] == kind
        assert headers.keys() >= {f"X-Service-Webhook-{name}" for name in ("Id", "Timestamp", "Signature")}
        assert headers.keys() >= {"webhook-id", "webhook-timestamp", "webhook-signature"}
        sent = build_headers([new_secret(), new_secret()], EVENT_ID.new(), kind, b"{}", 1_700_000_000)
        document = document_of(Base.CUSTOMER)
        for name in headers:
            assert validator(document, headers[name]).is_valid(sent[name]), name
        short = {"id": "x", "truncated": True, "url": None}
        body = item["post"]["requestBody"]["content"]["application/json"]
        assert validator(document, body["schema"]).is_valid(short)
        resource = CATALOGUE[kind].resource_type.__name__
        body = item["post"]["requestBody"]["content"]["application/json"]
        assert body["schema"] == {
            "oneOf": [
                {"$ref": f"#/components/schemas/{resource}"},
                {"$ref": "#/components/schemas/TruncatedResource"},
            ]
        }
