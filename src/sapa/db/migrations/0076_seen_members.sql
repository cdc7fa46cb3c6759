-- When members were last at the console, also after they signed out.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

ALTER TABLE memberships ADD COLUMN seen_at timestamptz(3);
