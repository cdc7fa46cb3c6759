-- Connections whose templates are to be read, and templates that wait for a decision, over all companies.
-- runs with code since: 0025
-- step: concurrently

CREATE INDEX CONCURRENTLY IF NOT EXISTS channel_connections_templates_idx
    ON channel_connections (source, templates_due_at) WHERE status = 'connected';

CREATE INDEX CONCURRENTLY IF NOT EXISTS message_templates_pending_idx
    ON message_templates (company_id) WHERE status = 'PENDING';
