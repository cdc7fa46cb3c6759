"""What statements of other rooms read of a company's accounts with carriers: parts for `compose`."""

ACCOUNT = """account AS (
    SELECT adapter, last_error IS NOT NULL AS has_error
      FROM carrier_connections
     WHERE company_id = $1 AND provider = :provider AND id = :connection_id AND status = 'connected')"""
"""The account that this process remembers, if it is still the provider's and works."""

STORED_ACCOUNT = """account AS (
    SELECT adapter FROM carrier_connections WHERE company_id = $1 AND provider = :provider)"""
"""The account that serves the provider, whether it works or not."""
