-- When the templates of a connection are to be read from its channel next.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

ALTER TABLE channel_connections ADD COLUMN templates_due_at timestamptz(3) NOT NULL DEFAULT now();
