-- The due replies of one company, for when companies take turns.
-- runs with code since: 0025
-- step: concurrently

CREATE INDEX CONCURRENTLY IF NOT EXISTS scheduled_replies_company_due_idx ON scheduled_replies (company_id, due_at)
 WHERE due_at IS NOT NULL;
