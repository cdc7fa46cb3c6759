-- The callbacks of a channel that a worker has begun and not finished.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

ALTER TABLE channel_lanes ADD COLUMN claimed bigint[] NOT NULL DEFAULT '{}';
