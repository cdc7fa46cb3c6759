"""Endpoints and stored events: what a run delivers."""

import asyncpg

from bench.ground import Ground
from sapa.db.pool import open_database
from sapa.settings import WebhookSettings
from sapa.values.sealing import Vault
from sapa.webhooks.endpoints import actions
from sapa.webhooks.types import WebhookEndpointIn

KIND = "customer.updated"
BODY_BYTES = 1024

INSECURE = WebhookSettings(allow_insecure=True, allowed_networks=())

PARTITIONS = "SELECT keep_day_partitions('events', 2, 30), keep_day_partitions('webhook_attempts', 2, 30)"

# As emit_all leaves them behind: an event with its exact bytes, and a row in the queue of every endpoint.
STORE = f"""
    WITH recorded AS (
        INSERT INTO events (company_id, id, kind, resource_id, body)
        SELECT company_id, 'evt_01' || tail, '{KIND}', 'cust_01' || tail,
               convert_to(rpad('{{"id":"cust_01' || tail || '","firstName":"', {BODY_BYTES - 2}, 'x') || '"}}', 'UTF8')
          FROM unnest($1::bigint[]) AS company_id
         CROSS JOIN generate_series(1, $2::integer) AS n
         CROSS JOIN LATERAL (SELECT left(md5(company_id || '/' || n || '/' || clock_timestamp()), 24) AS tail) AS t
        RETURNING company_id, id, created_at
    )
    INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
    SELECT e.company_id, 'whd_01' || left(md5(r.id || e.id), 24), e.id, r.created_at, r.id, r.created_at
      FROM webhook_endpoints e
      JOIN recorded r ON r.company_id = e.company_id
     WHERE e.status = 'active'"""


async def make_endpoints(ground: Ground, company_id: int, urls: list[str]) -> list[str]:
    """Their ids. They get every kind of event."""
    vault = Vault(ground.server.secret_key)
    async with open_database(ground.app_url) as database, database.transaction() as tx:
        return [
            (await actions.create(tx, vault, INSECURE, company_id, WebhookEndpointIn(url=url))).endpoint.id
            for url in urls
        ]


async def delete_endpoints(ground: Ground, company_id: int, ids: list[str]) -> None:
    """What was still to be delivered to them goes with them."""
    async with open_database(ground.app_url) as database, database.transaction() as tx:
        for id in ids:
            await actions.delete(tx, company_id, id)


async def make_partitions(ground: Ground) -> None:
    """As the worker's first job does, which a run would not wait for."""
    connection = await asyncpg.connect(ground.server.owner_url)
    try:
        await connection.execute(PARTITIONS)
    finally:
        await connection.close()
