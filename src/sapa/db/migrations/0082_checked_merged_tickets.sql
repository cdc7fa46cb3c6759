-- The rows of before follow the new constraints, too.
-- runs with code since: 0025
-- step: concurrently

ALTER TABLE tickets VALIDATE CONSTRAINT tickets_merged_check;
ALTER TABLE ticket_events VALIDATE CONSTRAINT ticket_events_kind_check;
