-- Timelines have counters. Entries of earlier versions are not counted yet; the worker does it.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE timeline_entries ADD COLUMN is_counted boolean NOT NULL DEFAULT false;
