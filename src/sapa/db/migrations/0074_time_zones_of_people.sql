-- The time zone in which a person reads and enters times; null: the company's.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

ALTER TABLE users ADD COLUMN time_zone text COLLATE "C";
