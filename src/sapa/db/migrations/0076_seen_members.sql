-- When members were last at the console, also after they signed out.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

ALTER TABLE memberships ADD COLUMN seen_at timestamptz(3);

UPDATE memberships m
   SET seen_at = (SELECT max(s.seen_at) FROM sessions s
                   WHERE s.organisation_id = m.organisation_id AND s.user_id = m.user_id);
