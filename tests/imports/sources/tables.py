"""Small files of other systems, and the records that they become."""

from pathlib import Path
from typing import Any

import msgspec

from sapa.imports.conversion import FileReading, convert_records, recognise_file
from sapa.imports.sources.interface import ConvertedRow
from sapa.imports.types import Problem, Resource
from sapa.orders.document import build_new_order
from sapa.orders.types import OrderIn
from sapa.values.company import Company
from tests.imports.foreign.files import write_csv, write_xlsx

Cells = dict[str, Any]


def convert(
    folder: Path, source: str, resource: Resource, rows: list[Cells], currency: str = "IDR", format: str = "csv"
) -> tuple[list[dict[str, Any]], list[Problem]]:
    """The records and the problems of a file with these rows; the first has all columns."""
    columns = list(rows[0])
    table = [columns, *([row.get(column, "") for column in columns] for row in rows)]
    path = folder / f"file.{format}"
    path.write_bytes(write_xlsx(table) if format == "xlsx" else write_csv(table))
    reading = FileReading(
        resource=resource,
        format="xlsx" if format == "xlsx" else "csv",
        source=source,
        region="ID",
        currency=currency,
    )
    found = list(convert_records(recognise_file(path, reading), reading))
    records: list[Any] = [one.value for one in found if isinstance(one, ConvertedRow)]
    return records, [one for one in found if isinstance(one, Problem)]


def get_total(order: dict[str, Any]) -> Any:
    """What our own arithmetic makes of an order."""
    names = {"lineItems", "discounts", "shippingLines", "fees", "taxLines"}
    fields = {name: value for name, value in order.items() if name in names}
    return build_new_order(Company(1, "live", "ID", "IDR"), msgspec.convert(fields, OrderIn), {}).priced.total
