-- Where old rows are: a few pages each, because rows are stored in the order of time.
-- runs with code since: 0025
-- step: concurrently

CREATE INDEX CONCURRENTLY IF NOT EXISTS messages_age_idx ON messages USING brin (created_at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS timeline_entries_age_idx ON timeline_entries USING brin (created_at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS shipment_events_age_idx ON shipment_events USING brin (received_at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS notices_age_idx ON notices USING brin (created_at);
