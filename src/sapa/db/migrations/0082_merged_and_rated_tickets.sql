-- The rows of before follow the constraints of merged tickets, too. The ratings of a period, for the report by agent.
-- runs with code since: 0025
-- step: concurrently

ALTER TABLE tickets VALIDATE CONSTRAINT tickets_merged_check;
ALTER TABLE ticket_events VALIDATE CONSTRAINT ticket_events_kind_check;

CREATE INDEX CONCURRENTLY IF NOT EXISTS ratings_rated_idx
    ON ratings (company_id, rated_at) INCLUDE (agent_id, source, score) WHERE status = 'rated';
