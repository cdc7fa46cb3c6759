-- Old rows are purged without locks on rows of many companies, which a sharded database does not take.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

CREATE OR REPLACE FUNCTION purge_rows(kind text, before timestamptz, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    purged  bigint;
BEGIN
    before := LEAST(before, now() - interval '28 days');
    CASE kind
    WHEN 'messages' THEN
        WITH old AS (
            SELECT m.company_id, m.id FROM messages m
             WHERE m.created_at < before
               AND NOT EXISTS (SELECT FROM tickets t WHERE t.company_id = m.company_id AND t.id = m.ticket_id
                                                       AND t.status <> 'resolved')
             LIMIT most),
        reports AS (
            DELETE FROM message_events e USING old WHERE e.company_id = old.company_id AND e.message_id = old.id),
        gone AS (
            DELETE FROM messages m USING old WHERE m.company_id = old.company_id AND m.id = old.id RETURNING m.id)
        SELECT count(*) INTO purged FROM gone;
    WHEN 'timeline' THEN
        WITH old AS (
            SELECT company_id, id FROM timeline_entries WHERE created_at < before LIMIT most),
        gone AS (
            DELETE FROM timeline_entries t USING old WHERE t.company_id = old.company_id AND t.id = old.id
            RETURNING t.company_id, t.customer_id, t.category, t.is_counted),
        uncounted AS (
            INSERT INTO counter_deltas (company_id, counter, cell, delta)
            SELECT company_id, 'timeline', customer_id || ' ' || category, -count(*) FROM gone
             WHERE is_counted GROUP BY company_id, customer_id, category)
        SELECT count(*) INTO purged FROM gone;
    WHEN 'shipment_events' THEN
        WITH old AS (
            SELECT company_id, shipment_id, dedupe_key FROM shipment_events WHERE received_at < before LIMIT most),
        gone AS (
            DELETE FROM shipment_events e USING old
             WHERE e.company_id = old.company_id AND e.shipment_id = old.shipment_id AND e.dedupe_key = old.dedupe_key
            RETURNING e.company_id)
        SELECT count(*) INTO purged FROM gone;
    WHEN 'audit' THEN
        WITH old AS (SELECT id FROM audit_entries WHERE created_at < before ORDER BY id LIMIT most),
        gone AS (DELETE FROM audit_entries a USING old WHERE a.id = old.id RETURNING a.id)
        SELECT count(*) INTO purged FROM gone;
    WHEN 'notices' THEN
        WITH old AS (SELECT company_id, id FROM notices WHERE created_at < before LIMIT most),
        gone AS (DELETE FROM notices n USING old WHERE n.company_id = old.company_id AND n.id = old.id RETURNING n.id)
        SELECT count(*) INTO purged FROM gone;
    END CASE;
    RETURN purged;
END $$;
