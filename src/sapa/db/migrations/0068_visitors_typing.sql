-- When a visitor of the web chat last typed something that was not sent yet.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

ALTER TABLE widget_visitors ADD COLUMN typing_at timestamptz(3);
