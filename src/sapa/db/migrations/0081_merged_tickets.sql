-- Which ticket a merged one continues in, and what was merged into a ticket, among its events.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

ALTER TABLE tickets ADD COLUMN merged_into_id text COLLATE "C";
ALTER TABLE tickets ADD CONSTRAINT tickets_merged_check CHECK (merged_into_id <> id) NOT VALID;

ALTER TABLE ticket_events DROP CONSTRAINT ticket_events_kind_check;
ALTER TABLE ticket_events ADD CONSTRAINT ticket_events_kind_check CHECK (kind IN (
    'opened', 'assigned', 'unassigned', 'handover', 'resolved', 'reopened', 'heard', 'said', 'announced',
    'labels', 'priority', 'team', 'snoozed', 'woken', 'merged')) NOT VALID;
