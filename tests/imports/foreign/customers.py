"""Customers as other systems export them, with their columns and quirks."""

from typing import Any

from tests.imports.foreign.files import ForeignFile, pick, write_csv
from tests.imports.shops import Person, Shop

SHOPIFY_CUSTOMERS_NEW = (
    "Customer ID|First Name|Last Name|Email|Accepts Email Marketing|Default Address Company|Default Address Address1"
    "|Default Address Address2|Default Address City|Default Address Province Code|Default Address Country Code"
    "|Default Address Zip|Default Address Phone|Phone|Accepts SMS Marketing|Total Spent|Total Orders|Note|Tax Exempt"
    "|Tags|Birthday (customer.metafields.custom.birthday)"
).split("|")
SHOPIFY_CUSTOMERS_OLD = (
    "First Name|Last Name|Email|Accepts Email Marketing|Company|Address1|Address2|City|Province|Province Code|Country"
    "|Country Code|Zip|Phone|Accepts SMS Marketing|Total Spent|Total Orders|Tags|Note|Tax Exempt"
).split("|")
FLAGS = {True: "yes", False: "no", None: ""}


def shopify_customers_new(shop: Shop) -> ForeignFile:
    rows = [
        pick(
            {
                "Customer ID": f"'72104483{person.number:05d}",
                "First Name": person.first,
                "Last Name": person.last,
                "Email": person.email,
                "Accepts Email Marketing": FLAGS[person.subscribes],
                "Default Address Address1": person.street,
                "Default Address City": person.city,
                "Default Address Province Code": "JB",
                "Default Address Country Code": "ID",
                "Default Address Zip": f"'{person.zip}",
                "Default Address Phone": f"'{person.e164}",
                "Phone": f"'{person.e164}" if person.number % 2 else "",
                "Total Spent": "150000.00",
                "Total Orders": "3",
                "Note": person.note,
                "Tax Exempt": "no",
                "Tags": ", ".join(person.tags),
                "Birthday (customer.metafields.custom.birthday)": "1990-02-01",
            },
            SHOPIFY_CUSTOMERS_NEW,
        )
        for person in shop.people
    ]
    expected = [
        _expect_person(person)
        | {"externalId": f"72104483{person.number:05d}", "addresses.0.zip": person.zip, "addresses.0.country": "ID"}
        | {"additionalData.totalOrders": 3}
        | {"additionalData.Birthday (customer.metafields.custom.birthday)": "1990-02-01"}
        | _expect_consent(person, "MAIL")
        for person in shop.people
    ]
    content = write_csv([SHOPIFY_CUSTOMERS_NEW, *rows])
    return ForeignFile("shopify-customers-new.csv", "shopify", "customers", content, expected, ["--keep-columns"])


def shopify_customers_old(shop: Shop) -> ForeignFile:
    header = [name.upper() for name in SHOPIFY_CUSTOMERS_OLD]
    rows = [
        pick(
            {
                "First Name": person.first,
                "Last Name": person.last,
                "Email": person.email,
                "Accepts Email Marketing": FLAGS[person.subscribes],
                "Address1": person.street,
                "City": person.city,
                "Province": person.province,
                "Country": "Indonesia",
                "Zip": f"'{person.zip}",
                "Phone": person.e164,
                "Total Spent": "0.00",
                "Total Orders": "0",
                "Tags": ", ".join(person.tags),
                "Tax Exempt": "no",
            },
            SHOPIFY_CUSTOMERS_OLD,
        )
        for person in shop.people
    ]
    expected = [_expect_person(person) | {"addresses.0.province": person.province} for person in shop.people]
    content = write_csv([header, *rows], encoding="utf-8-sig")
    return ForeignFile("shopify-customers-old.csv", "shopify", "customers", content, expected)


def woocommerce_customers(shop: Shop) -> ForeignFile:
    header = (
        "Name|Username|Last active|Date registered|Email|Orders|Total spend|AOV|Country / Region|City|Region"
        "|Postal code"
    ).split("|")
    rows = [
        [p.name, f"user{p.number}", "2026-01-05", "2025-01-05", p.email, "3", "150000.00", "50000.00", "ID", p.city,
         p.province, p.zip]
        for p in shop.people
    ]  # fmt: skip
    expected = [
        {"email": p.email, "firstName": p.first, "lastName": p.last, "additionalData.username": f"user{p.number}"}
        for p in shop.people
    ]
    return ForeignFile("woo-customers.csv", "woocommerce", "customers", write_csv([header, *rows]), expected)


def indonesian_customers(shop: Shop) -> ForeignFile:
    """UTF-16 with tabs, as Excel saves "Unicode text": leading zeros are lost, and a line of totals stands below."""
    header = ["Nama Lengkap", "No. HP", "Surel", "Alamat", "Kota/Kabupaten", "Provinsi", "Kode Pos", "Grup",
              "Tgl Lahir", "Langganan", "", ""]  # fmt: skip
    rows = [
        [p.name, p.phone[1:] if p.number % 2 else f"{p.phone} / 0811", p.email, p.street, p.city, p.province, p.zip,
         ";".join(p.tags), "17 Agustus 1990", {True: "Ya", False: "Tidak", None: ""}[p.subscribes], "", ""]
        for p in shop.people
    ]  # fmt: skip
    total = ["Total", str(len(rows)), *[""] * 10]
    content = write_csv([["sep=\t"], header, *rows, [""] * 12, total], "\t", "utf-16")
    expected = [
        _expect_person(p) | {"additionalData.Tgl Lahir": "17 Agustus 1990", "tags": p.tags} | _expect_consent(p, "CRM")
        for p in shop.people
    ]
    return ForeignFile("pelanggan.csv", "spreadsheet", "customers", content, expected, ["--keep-columns"])


def _expect_person(person: Person) -> dict[str, Any]:
    return {
        "email": person.email,
        "phoneNumber": person.e164,
        "firstName": person.first,
        "lastName": person.last,
        "tags": person.tags,
        "addresses.0.address1": person.street,
        "addresses.0.city": person.city,
    }


def _expect_consent(person: Person, app: str) -> dict[str, Any]:
    if person.subscribes is None:
        return {"subscriptionStatus": []}
    status = "subscribe" if person.subscribes else "unsubscribe"
    return {"subscriptionStatus": [{"app": app, "status": status}]}
