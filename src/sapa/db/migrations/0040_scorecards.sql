-- What the scorecards of carriers are computed from.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE shipments
    ADD COLUMN estimate        text,
    ADD COLUMN quoted_days     numeric,
    ADD COLUMN delivered_at    timestamptz(3),
    ADD COLUMN failed_attempts integer NOT NULL DEFAULT 0,
    ADD COLUMN area            text;
