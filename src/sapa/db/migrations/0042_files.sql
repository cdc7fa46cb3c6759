-- Files: what callers, agents and visitors upload and what customers send, each stored in parts here or in a bucket.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';

CREATE TABLE files (
    company_id       bigint         NOT NULL,
    id               text           COLLATE "C" NOT NULL,
    filename         text           NOT NULL DEFAULT '',
    -- Read from the bytes.
    media_type       text           COLLATE "C" NOT NULL DEFAULT 'application/octet-stream',
    -- In bytes; of a file that is being written, the most that it may have.
    size             bigint         NOT NULL,
    parts            integer        NOT NULL DEFAULT 0,
    storage          text           COLLATE "C" NOT NULL,
    status           text           COLLATE "C" NOT NULL DEFAULT 'writing',
    -- The visitor of the web chat who uploaded it.
    visitor_id       text           COLLATE "C",
    thumbnail        text           COLLATE "C" NOT NULL DEFAULT 'none',
    thumbnail_tries  smallint       NOT NULL DEFAULT 0,
    -- While a worker makes it, the time after which another may try.
    thumbnail_due_at timestamptz    NOT NULL DEFAULT now(),
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    -- When it is deleted, unless a message gets it before. Null while a message has it.
    expires_at       timestamptz(3),
    -- When it was last certain that a message has it.
    checked_at       timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT files_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT files_size_check CHECK (size >= 0 AND parts >= 0),
    CONSTRAINT files_storage_check CHECK (storage IN ('database', 'bucket')),
    CONSTRAINT files_status_check CHECK (status IN ('writing', 'stored', 'deleting')),
    CONSTRAINT files_thumbnail_check CHECK (thumbnail IN ('none', 'waiting', 'stored', 'failed'))
);

CREATE INDEX files_unused_idx ON files (company_id) INCLUDE (size, visitor_id) WHERE expires_at IS NOT NULL;
CREATE INDEX files_expires_idx ON files (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX files_checked_idx ON files (checked_at) WHERE expires_at IS NULL;
CREATE INDEX files_thumbnail_idx ON files (thumbnail_due_at) WHERE thumbnail = 'waiting';
CREATE INDEX files_movable_idx ON files (created_at) WHERE storage = 'database' AND status = 'stored';

CREATE TABLE file_parts (
    company_id  bigint  NOT NULL,
    file_id     text    COLLATE "C" NOT NULL,
    part        integer NOT NULL,
    data        bytea   NOT NULL,
    CONSTRAINT file_parts_pkey PRIMARY KEY (company_id, file_id, part)
);

-- Files are compressed already.
ALTER TABLE file_parts ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE file_thumbnails (
    company_id  bigint NOT NULL,
    file_id     text   COLLATE "C" NOT NULL,
    data        bytea  NOT NULL,
    CONSTRAINT file_thumbnails_pkey PRIMARY KEY (company_id, file_id)
);

-- The ids that channels gave to files when they were uploaded there, to be used for further messages.
CREATE TABLE channel_files (
    company_id     bigint         NOT NULL,
    file_id        text           COLLATE "C" NOT NULL,
    connection_id  text           COLLATE "C" NOT NULL,
    type           text           COLLATE "C" NOT NULL,
    channel_id     text           NOT NULL,
    expires_at     timestamptz(3) NOT NULL,
    CONSTRAINT channel_files_pkey PRIMARY KEY (company_id, file_id, connection_id, type)
);

-- How many files a company, a visitor or a network uploaded in the current minute or day. Unlogged: a crash of
-- PostgreSQL empties it.
CREATE UNLOGGED TABLE upload_windows (
    company_id    bigint      NOT NULL,
    subject       text        COLLATE "C" NOT NULL,
    window_start  timestamptz NOT NULL,
    used          integer     NOT NULL,
    CONSTRAINT upload_windows_pkey PRIMARY KEY (company_id, subject)
) WITH (fillfactor = 50);

CREATE INDEX upload_windows_start_idx ON upload_windows (window_start);

-- Null for files that were received before: their content is in message_media_parts.
ALTER TABLE message_media ADD COLUMN file_id text COLLATE "C";

CREATE INDEX message_media_file_idx ON message_media (company_id, file_id) WHERE file_id IS NOT NULL;

ALTER TABLE messages ADD COLUMN attachments json NOT NULL DEFAULT '[]';
