-- When the members who are signed in were last there.
-- runs with code since: 0025
-- step: batches
-- over: memberships

UPDATE memberships
   SET seen_at = (SELECT max(sessions.seen_at) FROM sessions
                   WHERE sessions.organisation_id = memberships.organisation_id
                     AND sessions.user_id = memberships.user_id)
 WHERE {batch} AND seen_at IS NULL;
