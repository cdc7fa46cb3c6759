-- Imports: files on their way in, and how far each has come.

SET LOCAL lock_timeout = '5s';


CREATE TABLE imports (
    company_id    bigint         NOT NULL,
    id            text           COLLATE "C" NOT NULL,
    resource      text           COLLATE "C" NOT NULL,
    format        text           COLLATE "C" NOT NULL,
    status        text           COLLATE "C" NOT NULL DEFAULT 'queued',
    dry_run       boolean        NOT NULL,
    -- Uploaded to us, or read by the command where it runs; the fingerprint finds an unfinished one again.
    is_upload     boolean        NOT NULL,
    fingerprint   bytea          NOT NULL,
    size          bigint         NOT NULL,
    -- The place to go on from: written in the transaction that imported what lies before it.
    position      bigint         NOT NULL DEFAULT 0,
    line          bigint         NOT NULL DEFAULT 0,
    rows          bigint         NOT NULL DEFAULT 0,
    created_rows  bigint         NOT NULL DEFAULT 0,
    updated_rows  bigint         NOT NULL DEFAULT 0,
    failed_rows   bigint         NOT NULL DEFAULT 0,
    -- Failures in a row at this place that nobody foresaw: after a few of them the import is given up.
    attempts      integer        NOT NULL DEFAULT 0,
    error         text,
    created_at    timestamptz(3) NOT NULL DEFAULT now(),
    updated_at    timestamptz(3) NOT NULL DEFAULT now(),
    finished_at   timestamptz(3),
    -- Whoever works on it, and until when nobody else may.
    holder        text,
    held_until    timestamptz    NOT NULL DEFAULT '-infinity',
    CONSTRAINT imports_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT imports_resource_check CHECK (resource IN ('customers', 'products', 'orders')),
    CONSTRAINT imports_format_check CHECK (format IN ('csv', 'ndjson')),
    CONSTRAINT imports_status_check CHECK (status IN ('queued', 'running', 'succeeded', 'partial', 'failed'))
);

CREATE INDEX imports_created_idx ON imports (company_id, created_at, id);
CREATE INDEX imports_unfinished_idx ON imports (updated_at) WHERE finished_at IS NULL;
-- A file that the command reads is imported once at a time; read in another format it is another file.
CREATE UNIQUE INDEX imports_file_key ON imports (company_id, resource, format, fingerprint, dry_run)
    WHERE finished_at IS NULL AND NOT is_upload;

CREATE TABLE import_chunks (
    company_id  bigint  NOT NULL,
    import_id   text    COLLATE "C" NOT NULL,
    number      integer NOT NULL,
    content     bytea   NOT NULL,
    CONSTRAINT import_chunks_pkey PRIMARY KEY (company_id, import_id, number),
    CONSTRAINT import_chunks_import_fkey FOREIGN KEY (company_id, import_id)
        REFERENCES imports (company_id, id) ON DELETE CASCADE
);

-- What a dry run has met so far, since it leaves no rows that a later line could meet.
CREATE TABLE import_keys (
    company_id  bigint NOT NULL,
    import_id   text   COLLATE "C" NOT NULL,
    key         text   COLLATE "C" NOT NULL,
    owner       text   COLLATE "C" NOT NULL,
    CONSTRAINT import_keys_pkey PRIMARY KEY (company_id, import_id, key),
    CONSTRAINT import_keys_import_fkey FOREIGN KEY (company_id, import_id)
        REFERENCES imports (company_id, id) ON DELETE CASCADE
);

CREATE TABLE import_errors (
    company_id  bigint NOT NULL,
    import_id   text   COLLATE "C" NOT NULL,
    line        bigint NOT NULL,
    field       text   NOT NULL,
    message     text   NOT NULL,
    CONSTRAINT import_errors_pkey PRIMARY KEY (company_id, import_id, line),
    CONSTRAINT import_errors_import_fkey FOREIGN KEY (company_id, import_id)
        REFERENCES imports (company_id, id) ON DELETE CASCADE
);
