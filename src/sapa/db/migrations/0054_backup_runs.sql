-- When backups were made, and how it went.
-- runs with code since: 0052

SET LOCAL lock_timeout = '5s';

CREATE TABLE backup_runs (
    number       bigint         GENERATED ALWAYS AS IDENTITY,
    started_at   timestamptz(3) NOT NULL DEFAULT now(),
    finished_at  timestamptz(3),
    status       text           COLLATE "C" NOT NULL DEFAULT 'running',
    -- Without the key of a bucket.
    place        text           NOT NULL,
    rows         bigint         NOT NULL DEFAULT 0,
    bytes        bigint         NOT NULL DEFAULT 0,
    error        text,
    CONSTRAINT backup_runs_pkey PRIMARY KEY (number),
    CONSTRAINT backup_runs_status_check CHECK (status IN ('running', 'done', 'failed'))
);
