from datetime import date

from msgspec import Struct

from sapa.db.write_columns import WriteColumns
from sapa.values.json import encode


class Person(Struct, frozen=True):
    email: str | None
    tags: list[str]
    addresses: bytes

    @property
    def email_key(self) -> str | None:
        return self.email and self.email.casefold()


COLUMNS = WriteColumns(Person, "email_key")


def test_columns_and_parameters_have_one_order() -> None:
    assert COLUMNS.listed == "email, tags, addresses, email_key"
    assert COLUMNS.numbered(3) == "$3, $4, $5, $6"
    assert COLUMNS.assigned(3) == "email = $3, tags = $4, addresses = $5, email_key = $6"
    assert COLUMNS.values(Person("Ayu@X.id", ["a"], b"[]")) == ["Ayu@X.id", ["a"], b"[]", "ayu@x.id"]


def test_many_rows_are_read_from_one_document() -> None:
    assert COLUMNS.typed == "email text, tags text[], addresses json, email_key text"
    assert COLUMNS.excluded.startswith("email = excluded.email, tags = excluded.tags")
    document = COLUMNS.document(Person(None, ["a", "b"], b"[1]"))
    assert encode(document) == b'{"email":null,"tags":["a","b"],"addresses":[1],"email_key":null}'


class Seat(Struct, frozen=True):
    row: int


class Party(Struct, frozen=True):
    name: str
    seats: list[Seat]
    host: Person


def test_structs_are_stored_as_json() -> None:
    columns = WriteColumns(Party, without=["host"])
    assert columns.listed == "name, seats"
    assert columns.values(Party("Ayu", [Seat(1), Seat(2)], Person(None, [], b""))) == ["Ayu", b'[{"row":1},{"row":2}]']


class Guest(Struct, frozen=True):
    birthday: date | None
    is_regular: bool
    visits: int


def test_other_types_are_declared_as_those_of_their_columns() -> None:
    columns = WriteColumns(Guest)
    assert columns.typed == "birthday date, is_regular boolean, visits bigint"
    document = columns.document(Guest(date(1990, 5, 17), True, 3))
    assert encode(document) == b'{"birthday":"1990-05-17","is_regular":true,"visits":3}'


def test_fields_that_are_written_otherwise_are_left_out() -> None:
    columns = WriteColumns(Person, "email_key", without={"tags"})
    assert columns.listed == "email, addresses, email_key"
    assert columns.values(Person("Ayu@X.id", ["a"], b"[]")) == ["Ayu@X.id", b"[]", "ayu@x.id"]
