-- The audit log has changes by program, too.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';

ALTER TABLE audit_entries ADD COLUMN key_id text COLLATE "C";
