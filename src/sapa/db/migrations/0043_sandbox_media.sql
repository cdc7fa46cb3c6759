-- Files that were uploaded to simulators of channels.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';

CREATE TABLE sandbox_media (
    company_id  bigint      NOT NULL,
    source      text        COLLATE "C" NOT NULL,
    id          text        COLLATE "C" NOT NULL,
    media_type  text        COLLATE "C" NOT NULL,
    content     bytea       NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT sandbox_media_pkey PRIMARY KEY (company_id, source, id)
);

CREATE INDEX sandbox_media_created_idx ON sandbox_media (created_at);
