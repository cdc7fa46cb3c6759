"""SQL of scorecards. One scan over the shipments of a period."""

from collections.abc import Mapping

from sapa.db.listing import Listing
from sapa.db.pool import Connection
from sapa.db.sql import sql
from sapa.shipping.scorecards.types import UNKNOWN, Figure, Grouping, ReportPeriod, Scorecard, ScorecardParcel

MAX_ROWS = 1_000
_ZONE = "(SELECT c.time_zone FROM companies c WHERE c.company_id = $1)"

# Shipments of before these columns were stored have them in what was.
_CARRIER = "coalesce(adapter, provider)"
_SERVICE = f"coalesce(service_name, service_code, '{UNKNOWN}')"
_AREA = f"coalesce(area, nullif(delivery->>'city', ''), '{UNKNOWN}')"
# What a customer sends back says nothing of how parcels arrive.
_PARCEL = "picked_up_at IS NOT NULL AND return_of IS NULL"
_DELIVERED_AT = "coalesce(delivered_at, CASE WHEN shipping_status = 'delivered' THEN event_timestamp END)"
_DAYS = f"(({_DELIVERED_AT}) AT TIME ZONE {_ZONE})::date - (picked_up_at AT TIME ZONE {_ZONE})::date"

_IS: dict[Figure, str] = {
    "parcels": f"({_PARCEL})",
    "delivered": f"({_PARCEL} AND shipping_status = 'delivered')",
    "timed": f"({_PARCEL} AND shipping_status = 'delivered' AND quoted_days IS NOT NULL"
    f" AND {_DELIVERED_AT} IS NOT NULL)",
    "late": f"({_PARCEL} AND shipping_status = 'delivered' AND {_DAYS} > quoted_days)",
    "failed_attempts": f"({_PARCEL} AND failed_attempts > 0)",
    "returned": f"({_PARCEL} AND shipping_status IN ('returning', 'returned'))",
    "lost": f"({_PARCEL} AND shipping_status = 'lost')",
}
"""The condition of each figure: the report and the list of its parcels use the same."""

REPORT = sql(
    f"""
    WITH parcels AS (
        SELECT provider, {_CARRIER} AS carrier,
               CASE WHEN $4::boolean THEN {_SERVICE} END AS service,
               CASE WHEN $5::boolean THEN {_AREA} END AS area,
               {_IS["delivered"]} AS is_delivered, {_IS["timed"]} AS is_timed,
               coalesce({_IS["late"]}, false) AS is_late,
               {_IS["failed_attempts"]} AS has_failed, {_IS["returned"]} AS is_returned, {_IS["lost"]} AS is_lost,
               quoted_days, {_DAYS} AS actual_days
          FROM shipments
         WHERE company_id = $1 AND created_at >= $2 AND created_at < $3 AND {_IS["parcels"]}
    )
    SELECT provider, carrier, service, area, count(*) AS parcels,
           count(*) FILTER (WHERE is_delivered) AS delivered,
           count(*) FILTER (WHERE is_timed) AS timed,
           count(*) FILTER (WHERE is_late) AS late,
           trim_scale(round(100.0 * count(*) FILTER (WHERE is_timed AND NOT is_late)
                            / nullif(count(*) FILTER (WHERE is_timed), 0), 1)) AS on_time_rate,
           trim_scale(round(avg(quoted_days) FILTER (WHERE is_timed), 1)) AS quoted_days,
           trim_scale(round(avg(actual_days) FILTER (WHERE is_timed), 1)) AS actual_days,
           percentile_disc(0.9) WITHIN GROUP (ORDER BY actual_days) FILTER (WHERE is_timed)::numeric AS slowest_days,
           count(*) FILTER (WHERE has_failed) AS failed_attempts,
           trim_scale(round(100.0 * count(*) FILTER (WHERE has_failed) / count(*), 1)) AS failed_attempt_rate,
           count(*) FILTER (WHERE is_returned) AS returned,
           trim_scale(round(100.0 * count(*) FILTER (WHERE is_returned)
                            / nullif(count(*) FILTER (WHERE is_delivered OR is_returned OR is_lost), 0), 1))
               AS return_rate,
           count(*) FILTER (WHERE is_lost) AS lost
      FROM parcels
     GROUP BY provider, carrier, service, area
     ORDER BY parcels DESC, carrier, service, area
     LIMIT $6""",
    row=Scorecard,
)

PARCELS = Listing(
    "shipments",
    row=ScorecardParcel,
    counter="shipments",
    filters={
        "created_from": "created_at >= {}",
        "created_to": "created_at < {}",
        "carrier": f"{_CARRIER} = {{}}",
        "service": f"{_SERVICE} = {{}}",
        "area": f"{_AREA} = {{}}",
        **{f"is_{figure}": f"({condition} AND {{}}::boolean)" for figure, condition in _IS.items()},
    },
    sorts={"createdAt": "created_at"},
    columns={
        "carrier": _CARRIER,
        "service": _SERVICE,
        "area": _AREA,
        "actual_days": _DAYS,
        "delivered_at": _DELIVERED_AT,
    },
)


async def list_scorecards(db: Connection, company_id: int, period: ReportPeriod, grouping: Grouping) -> list[Scorecard]:
    """Most parcels first; one more than `MAX_ROWS` if there are too many."""
    by_service, by_area = grouping in {"service", "all"}, grouping in {"area", "all"}
    return await REPORT.all(db, company_id, period.start, period.end, by_service, by_area, MAX_ROWS + 1)


async def list_parcels(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[ScorecardParcel], int]:
    """Newest first, and the total."""
    return await PARCELS.page(db, company_id, filters, "createdAt:desc", limit, offset)
