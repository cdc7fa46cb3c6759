-- Whether a company has any stops.
-- runs with code since: 0025
-- step: concurrently

CREATE INDEX CONCURRENTLY IF NOT EXISTS consents_stops_idx ON consents (company_id)
    WHERE status = 'unsubscribe' AND kind <> 'customer';
