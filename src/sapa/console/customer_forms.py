"""Customers created, changed and deleted by form."""

from typing import Any

from starlette.responses import Response

from sapa.console.fields import gather, split_labels
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS, EVERYBODY
from sapa.console.routes import console, go_to
from sapa.console.shown_fields import build_shown, put_shown
from sapa.customers.types import CustomerExists
from sapa.http.errors import Invalid

TEXTS = ("firstName", "lastName", "phoneNumber", "email")
ADDRESS = ("id", "address1", "address2", "city", "province", "zip", "country")
MAX_ADDRESSES = 10
"""Addresses that the form shows; the API changes customers who have more."""

Json = dict[str, Any]


@console.get("/{environment}/customers/new", roles=EVERYBODY)
async def show_new_customer(page: PageRequest) -> Response:
    return _show_form(page, None)


@console.post("/{environment}/customers/new", roles=EVERYBODY, shown_by=show_new_customer, says="Customer added")
async def create_customer(page: PageRequest) -> Response:
    body = _gather_body(page) | {"externalId": page.form_value("externalId") or None}
    customer = await page.call("POST", "/customers", body=body)
    return go_to(page.path(f"/customers/{customer['data']['id']}"))


@console.get("/{environment}/customers/{id}/edit", roles=EVERYBODY)
async def show_customer_form(page: PageRequest) -> Response:
    return _show_form(page, await _get_customer(page))


@console.post(
    "/{environment}/customers/{id}/edit", roles=EVERYBODY, shown_by=show_customer_form, says="Customer updated"
)
async def change_customer(page: PageRequest) -> Response:
    customer = await _get_customer(page)
    body = _gather_body(page)
    stored = {address["id"]: address for address in customer["addresses"]}
    for address in body["addresses"]:
        if address["id"] not in stored:
            address["id"] = None  # somebody deleted it
    body["addresses"] = [stored.get(address["id"], {}) | address for address in body["addresses"]]
    body["addresses"] += customer["addresses"][MAX_ADDRESSES:]
    await put_shown(page, f"/customers/{customer['id']}", body, _list_shown(customer))
    return go_to(page.path(f"/customers/{customer['id']}"))


@console.post(
    "/{environment}/customers/{id}/delete", roles=DEVELOPERS, shown_by=show_customer_form, says="Customer deleted"
)
async def delete_customer(page: PageRequest) -> Response:
    await page.call("DELETE", f"/customers/{page.request.path_params['id']}")
    return go_to(page.back_to("/customers"))


async def _get_customer(page: PageRequest) -> Json:
    customer: Json = (await page.call("GET", f"/customers/{page.request.path_params['id']}"))["data"]
    return customer


def _show_form(page: PageRequest, customer: Json | None) -> Response:
    stored = customer or {}
    if page.form:
        values = {name: page.form_value(name) for name in (*TEXTS, "externalId", "tags")}
        addresses = _list_typed(page)
    else:
        values = {name: stored.get(name) or "" for name in (*TEXTS, "externalId")}
        values["tags"] = ", ".join(stored.get("tags", []))
        addresses = stored.get("addresses", [])[:MAX_ADDRESSES]
    if len(addresses) < MAX_ADDRESSES and (not addresses or any(addresses[-1].values())):
        addresses = [*addresses, dict.fromkeys((*ADDRESS, "mainAddress"), "")]
    return page.show(
        "customer_form.html",
        customer=customer,
        values=values,
        addresses=addresses,
        existing=name_existing(page),
        shown=build_shown(page, _list_shown(stored)),
    )


def _list_shown(customer: Json) -> dict[str, str]:
    """What the form shows of a stored customer."""
    addresses = [
        ", ".join(filter(None, (one[name] for name in ADDRESS[1:]))) + (" ★" if one["mainAddress"] else "")
        for one in customer.get("addresses", [])[:MAX_ADDRESSES]
    ]
    fields = {name: customer.get(name) or "" for name in TEXTS}
    return fields | {"tags": ", ".join(customer.get("tags", [])), "addresses": "; ".join(addresses)}


def name_existing(page: PageRequest) -> str:
    """The customer who has the phone number or email that was entered."""
    if not isinstance(page.error, CustomerExists):
        return ""
    return next((problem.id for problem in page.error.details or [] if problem.id), "")


def _gather_body(page: PageRequest) -> Json:
    typed = _list_typed(page)
    for number, address in enumerate(typed):
        if not (address["address1"] or address["id"]) and any(address[name] for name in ADDRESS):
            raise Invalid.field(f"addresses[{number}].address1", "enter the street and number, or empty the address")
    addresses = [address for address in typed if address["address1"]]
    if not page.form_value("phoneNumber") and not page.form_value("email"):
        raise Invalid.field("phoneNumber", "enter a phone number or an email")
    return gather(page, TEXTS) | {"tags": split_labels(page, "tags"), "addresses": addresses}


def _list_typed(page: PageRequest) -> list[Json]:
    """The form's addresses; one that is stored is removed by emptying its first line."""
    columns = [page.form_values(f"address.{name}") for name in ADDRESS]
    main = page.form_value("mainAddress")
    return [
        {name: text.strip() or None for name, text in zip(ADDRESS, row, strict=True)}
        | {"mainAddress": str(number) == main}
        for number, row in enumerate(zip(*columns, strict=False))
    ]
