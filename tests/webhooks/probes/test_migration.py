"""Endpoints that existed before probes did."""

import pytest

from sapa.db.migrations import migrate, migrate_to
from sapa.db.migrations.files import list_migrations
from tests.conftest import Installation
from tests.db.scratch import connect, scratch_database

OLD_ENDPOINTS = """
    INSERT INTO organisations (name) VALUES ('Toko Kopi');
    INSERT INTO companies (organisation_id, environment) SELECT id, 'live' FROM organisations;
    INSERT INTO webhook_endpoints (company_id, id, url, kinds, secret, status, missed_since)
    SELECT company_id, e.id, 'https://shop.example/hooks', '{}', '', e.status, now() - e.missed
      FROM companies, (VALUES ('active', 'active', NULL), ('paused', 'paused', interval '1 hour'),
                              ('recent', 'suspended', interval '1 hour'), ('old', 'suspended', interval '5 days'))
                      AS e (id, status, missed)"""


@pytest.mark.long
@pytest.mark.one_server("migrates a database that is not distributed yet")
async def test_existing_endpoints_resume_by_themselves_unless_they_failed_long_ago(installation: Installation) -> None:
    (migration,) = [one for one in list_migrations() if one.name.endswith("_webhook_probes")]
    async with scratch_database(installation.server) as scratch, connect(scratch.owner_url) as owner:
        await migrate_to(scratch.owner_url, migration.number - 1)
        await owner.execute(OLD_ENDPOINTS)
        await migrate(scratch.owner_url, scratch.app_url)
        rows = await owner.fetch(
            "SELECT id, auto_resume, next_probe_at IS NOT NULL, suspended_at IS NOT NULL"
            "  FROM webhook_endpoints ORDER BY id"
        )
    assert [tuple(row) for row in rows] == [
        ("active", True, False, False),
        ("old", True, False, True),
        ("paused", True, False, False),
        ("recent", True, True, True),
    ]
