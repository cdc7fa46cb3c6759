"""Queries that statements of other rooms contain; see `compose` in `src/sapa/db/sql.py`."""

MATCHING = """matching AS (
    SELECT id
      FROM customers
     WHERE company_id = $1 AND (phone_number = ANY(:phone_numbers::text[]) OR email_key = :email_key::text)
     ORDER BY array_position(:phone_numbers::text[], phone_number) NULLS LAST, id
     LIMIT 1)"""
"""The customer with one of these variants of a phone number, else the one with this e-mail address."""
