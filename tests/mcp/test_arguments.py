"""A tool's flat arguments become the path, the query and the body of its endpoint."""

import msgspec
import pytest
from msgspec import Raw

from sapa.domains import ROUTES
from sapa.http.errors import Invalid
from sapa.mcp.arguments import ToolRequest, build_request
from sapa.mcp.guides import DOCS_TOOL
from sapa.mcp.tools import Catalogue

CATALOGUE = Catalogue(ROUTES, DOCS_TOOL)


def build(name: str, text: str) -> ToolRequest:
    return build_request(CATALOGUE.tools[name], msgspec.json.decode(text, type=dict[str, Raw]))


def refuse(name: str, text: str) -> tuple[str, str]:
    with pytest.raises(Invalid) as raised:
        build(name, text)
    details = raised.value.details
    assert details is not None
    return details[0].field, details[0].message


def test_a_path_a_query_and_a_body_are_told_apart() -> None:
    request = build("update_order", '{"id":"order_1","notes":"Halo","tags":["vip"]}')
    assert (request.path, request.path_values, request.query) == ("/customer/v1/orders/order_1", ["order_1"], b"")
    assert request.body == b'{"notes":"Halo","tags":["vip"]}'


def test_a_comma_within_a_value_of_a_list_is_refused() -> None:
    assert build("list_customers", '{"tags":["vip","new"]}').query == b"tags=vip%2Cnew"
    assert refuse("list_customers", '{"tags":["vip,new"]}') == (
        "tags",
        "has a value with a comma, which separates the values",
    )


def test_the_values_of_a_body_stay_as_they_were_sent() -> None:
    """A float would lose digits of an amount, and the history of a send keeps the body."""
    sent = '{"customerId":"cust_1","lineItems":[ {"title":"\\u00e9","price":12345678901234567.89} ]}'
    assert build("create_order", sent).body.decode() == sent


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        ("{}", b""),
        ('{"page":2,"limit":5}', b"limit=5&page=2"),
        ('{"limit":5,"page":2}', b"limit=5&page=2"),
        ('{"page":2.0}', b"page=2"),
        ('{"page":null,"search":null}', b""),
        ('{"tags":["a b","c&d"]}', b"tags=a+b%2Cc%26d"),
        ('{"search":"é"}', b"search=%C3%A9"),
        ('{"search":true,"tags":false}', b"search=true&tags=false"),
    ],
)
def test_a_query_is_written_as_the_api_reads_it(arguments: str, query: bytes) -> None:
    """In one order, however the arguments are ordered: a repeated call with an idempotency key is the same call."""
    assert build("list_customers", arguments).query == query


def test_a_body_that_may_be_left_out_is_left_out() -> None:
    assert build("resolve_ticket", '{"id":"tkt_1"}').body == b""
    assert build("cancel_shipment", '{"id":"shp_1","reason":"late"}').body == b'{"reason":"late"}'
    assert build("create_customer", "{}").body == b"{}"


@pytest.mark.parametrize(
    ("name", "arguments", "field", "message"),
    [
        ("get_order", "{}", "id", "is required"),
        ("get_order", '{"id":null}', "id", "is required"),
        ("get_order", '{"id":["order_1"]}', "id", "must be a string"),
        ("get_order", '{"id":true}', "id", "must be a string"),
        (
            "get_order",
            '{"id":"order_1","orderId":"x"}',
            "orderId",
            "is not an argument of this tool. Its arguments: id",
        ),
        ("list_orders", '{"status":{"a":1}}', "status", "must be a text, a number, true or false, or a list of texts"),
        ("create_customer", '{"idempotencyKey":5}', "idempotencyKey", "must be a string"),
        ("create_customer", '{"idempotencyKey":"é"}', "idempotencyKey", "must be 1 to 255 printable ASCII characters"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_named(name: str, arguments: str, field: str, message: str) -> None:
    assert refuse(name, arguments) == (field, message)


def test_the_idempotency_key_leaves_the_body_unless_the_body_has_a_field_of_its_name() -> None:
    plain = build("create_customer", '{"email":"a@example.com","idempotencyKey":"k"}')
    assert (plain.idempotency_key, plain.body) == ("k", b'{"email":"a@example.com"}')
    both = build("adjust_points", '{"customerId":"cust_1","points":5,"idempotencyKey":"k"}')
    assert (both.idempotency_key, both.body) == ("k", b'{"points":5,"idempotencyKey":"k"}')
    assert build("update_order", '{"id":"order_1","idempotencyKey":"k"}').idempotency_key == "k"
