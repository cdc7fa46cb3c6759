"""Companies that sleep: nothing of theirs is due for days."""

from bench.ground import Ground
from bench.loyalty.owner import open_owner
from sapa.messaging.channels.interface import Source

PER_COMPANY = 10
"""Endpoints and shipments. Connections: one to each channel."""

COMPANIES = """
    WITH named AS (
        INSERT INTO organisations (name) SELECT 'Sleeper ' || n FROM generate_series(1, $1) AS n RETURNING id
    )
    INSERT INTO companies (organisation_id, environment)
    SELECT id, environment FROM named CROSS JOIN (VALUES ('live'), ('test')) AS e (environment)"""

ENDPOINTS = """
    INSERT INTO webhook_endpoints (company_id, id, url, kinds, secret)
    SELECT c.company_id, 'whe_' || n, 'https://receiver.example/' || n, '{}', 'sealed'
      FROM companies c CROSS JOIN generate_series(1, $1) AS n
     WHERE c.environment = 'live'"""

LANES = """
    INSERT INTO webhook_lanes (company_id, endpoint_id) SELECT company_id, id FROM webhook_endpoints
        ON CONFLICT DO NOTHING"""

CONNECTIONS = """
    INSERT INTO channel_connections (company_id, id, source, account_id, account, credentials, hook_hash, renew_at,
                                     templates_due_at)
    SELECT c.company_id, 'chn_' || source, source, '1', '{}', 'sealed', sha256((c.company_id || source)::bytea),
           now() + interval '30 days', now() + interval '30 days'
      FROM companies c CROSS JOIN unnest($1::text[]) AS source
     WHERE c.environment = 'live'"""

STATUSES = """
    INSERT INTO channel_statuses (company_id, connection_id, source, connected_number, check_at)
    SELECT company_id, id, source, account_id, now() + interval '30 days' FROM channel_connections
        ON CONFLICT DO NOTHING"""

SHIPMENTS = """
    INSERT INTO shipments (company_id, id, provider, provider_label, currency, shipping_status, package_handover,
                           insurance, search_text, poll_at)
    SELECT c.company_id, 'shp_' || n, 'gosend', 'GoSend', 'IDR', 'ONGOING', 'PICKUP', FALSE, 'sleeper ' || n,
           now() + interval '30 days'
      FROM companies c CROSS JOIN generate_series(1, $1) AS n
     WHERE c.environment = 'live'"""


async def add_sleepers(ground: Ground, companies: int) -> None:
    async with open_owner(ground) as owner:
        await owner.execute(COMPANIES, companies)
        await owner.execute(ENDPOINTS, PER_COMPANY)
        await owner.execute(LANES)
        await owner.execute(CONNECTIONS, [source.value for source in Source])
        await owner.execute(STATUSES)
        await owner.execute(SHIPMENTS, PER_COMPANY)
        await owner.execute("VACUUM ANALYZE")
