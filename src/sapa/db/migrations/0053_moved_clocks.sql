-- The worker finds the few companies whose test clock was moved without reading all companies.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';

CREATE INDEX companies_moved_idx ON companies (company_id) WHERE clock_offset > interval '0';
