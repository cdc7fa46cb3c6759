-- The entries that 0055 left to count. Apart from the column, so that only those who write timelines wait.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


CREATE INDEX timeline_entries_uncounted_idx ON timeline_entries (company_id, customer_id, category)
    WHERE NOT is_counted;
