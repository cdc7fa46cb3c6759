-- Checks the constraints of 0057 on the rows that were there before, and makes the indexes of the inbox: here only
-- writers wait, and only for the indexes.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE tickets
    VALIDATE CONSTRAINT tickets_priority_check,
    VALIDATE CONSTRAINT tickets_snoozed_check;
ALTER TABLE ticket_events VALIDATE CONSTRAINT ticket_events_kind_check;

CREATE INDEX tickets_waiting_idx ON tickets (company_id, waiting_since, id);
CREATE INDEX tickets_cell_waiting_idx ON tickets (company_id, cell, waiting_since, id);
CREATE INDEX tickets_team_idx ON tickets (company_id, team_id, status, last_message_at, id) WHERE team_id IS NOT NULL;
CREATE INDEX tickets_labels_idx ON tickets USING gin (company_id, label_ids) WHERE label_ids <> '{}';

-- What the inbox counts.
CREATE INDEX tickets_counts_idx ON tickets (company_id) INCLUDE (agent_id, snoozed_until, waiting_since)
    WHERE status <> 'resolved';

-- Those that the worker wakes.
CREATE INDEX tickets_snoozed_idx ON tickets (company_id, snoozed_until) WHERE snoozed_until IS NOT NULL;

-- Those that miss a target next.
CREATE INDEX tickets_sla_due_idx ON tickets (company_id, sla_due_at) WHERE sla_due_at IS NOT NULL;

-- What the search over tickets looks through.
CREATE INDEX messages_text_idx ON messages USING gin (company_id, lower(left(body, 2000)) gin_trgm_ops)
    WHERE ticket_id IS NOT NULL;
CREATE INDEX contacts_name_idx ON contacts USING gin (company_id, lower(name) gin_trgm_ops);
CREATE INDEX contact_identities_key_idx ON contact_identities USING gin (company_id, lower(key) gin_trgm_ops);
