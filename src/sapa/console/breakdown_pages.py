"""Reports by product, channel and carrier, with the rows behind them."""

from collections.abc import Sequence

from starlette.responses import Response

from sapa.console.page_request import PageRequest
from sapa.console.rendering import HEADERS
from sapa.console.report_pages import build_csv, build_period, get_company, get_frame, read_window
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console
from sapa.http.errors import Invalid
from sapa.reports import actions as reports

GROUPS = {
    "products": ("name", "orders", "units", "refunded_units", "charged"),
    "channels": ("source", "received", "sent", "delivered", "read", "failed"),
    "carriers": ("label", "shipments", "delivered", "problems", "fees"),
}
"""Each with the columns of its file."""
KEYS = {"products": "name", "channels": "source", "carriers": "provider"}


@console.get("/{environment}/reports/breakdown", roles=DEVELOPERS)
async def show_breakdown(page: PageRequest) -> Response:
    company = await get_company(page)
    window = await read_window(page, company)
    by = page.request.query_params.get("by", "")
    by = by if by in GROUPS else "products"
    currency = page.session.currency_of_sales(company)
    rows: Sequence[object] = []
    earlier: Sequence[object] = []
    is_compared = True
    async with page.context.long_reads.snapshot(company.id) as db:
        before = await reports.get_previous_window(db, company, window)
        if by == "channels":
            rows, earlier = await reports.compare_channels(db, company, window, before)
        elif by == "carriers":
            rows, earlier = [await reports.list_carriers(db, company, one, currency) for one in (window, before)]
        else:
            try:
                rows = await reports.list_products(db, company, window, currency)
            except Invalid as error:
                page.error = error
            try:
                earlier = await reports.list_products(db, company, before, currency)
            except Invalid:
                is_compared = False
    if page.request.query_params.get("file") and page.error is None:
        lines = [GROUPS[by], *([getattr(row, name) for name in GROUPS[by]] for row in rows)]
        name = f"{by}-{window.first}-{window.last}.csv"
        headers = HEADERS | {"content-disposition": f'attachment; filename="{name}"'}
        return Response(build_csv(lines), 200, headers, "text/csv; charset=utf-8")
    return page.show(
        "report_breakdown.html",
        rows=rows,
        by=by,
        before=before,
        is_compared=is_compared,
        earlier={getattr(row, KEYS[by]): row for row in earlier},
        period=build_period(window.start, window.end),
        groups=list(GROUPS),
        currency=currency,
        **get_frame(page, window),
    )
