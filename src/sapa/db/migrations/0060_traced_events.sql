-- An event that a traced call recorded names the trace, which its webhooks continue. Connections of such calls have the
-- setting; all others have none.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';


ALTER TABLE events ADD COLUMN traceparent text COLLATE "C";
ALTER TABLE events ALTER COLUMN traceparent SET DEFAULT current_setting('sapa.traceparent', true);
