"""Queries that statements of other rooms contain; see `compose` in `src/sapa/db/sql.py`."""

READ_CLOCK = """
    SELECT date_trunc('milliseconds', t.now + clock_offset) AS now, date_trunc('milliseconds', t.now) AS real
      FROM companies
     CROSS JOIN (SELECT clock_timestamp() AS now) AS t
     WHERE company_id = $1"""

CLOCK = f"clock AS ({READ_CLOCK})"
"""The columns of `CompanyClock`."""

COMPANY = """company AS (
    SELECT company_id, environment, region, currency, time_zone, language, cart_orders
      FROM companies
     WHERE company_id = $1)"""
"""The columns of `CompanyColumns`."""
