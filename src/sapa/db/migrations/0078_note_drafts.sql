-- Notes that agents have typed in the console and not added, beside the draft of the reply.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

ALTER TABLE reply_drafts ADD COLUMN note text NOT NULL DEFAULT '';
