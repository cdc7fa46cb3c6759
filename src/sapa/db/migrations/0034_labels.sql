-- Labels, packing slips and pickup manifests: the worker makes files of up to 500 shipments.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE shipments ADD COLUMN sorting_code text;

CREATE TABLE label_batches (
    company_id    bigint         NOT NULL,
    id            text           COLLATE "C" NOT NULL,
    document      text           COLLATE "C" NOT NULL,
    format        text           COLLATE "C" NOT NULL,
    source        text           COLLATE "C" NOT NULL,
    shipment_ids  text[]         COLLATE "C" NOT NULL,
    status        text           COLLATE "C" NOT NULL DEFAULT 'queued',
    error         text,
    size          bigint,
    holder        text,
    held_until    timestamptz    NOT NULL DEFAULT '-infinity',
    attempts      smallint       NOT NULL DEFAULT 0,
    created_at    timestamptz(3) NOT NULL DEFAULT now(),
    finished_at   timestamptz(3),
    CONSTRAINT label_batches_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT label_batches_document_check CHECK (document IN ('label', 'packing_slip', 'manifest')),
    CONSTRAINT label_batches_format_check CHECK (format IN ('a6', 'roll80')),
    CONSTRAINT label_batches_source_check CHECK (source IN ('sapa', 'carrier')),
    CONSTRAINT label_batches_status_check CHECK (status IN ('queued', 'running', 'succeeded', 'failed')),
    CONSTRAINT label_batches_shipments_check CHECK (cardinality(shipment_ids) BETWEEN 1 AND 500),
    CONSTRAINT label_batches_finished_check CHECK ((finished_at IS NULL) = (status IN ('queued', 'running')))
);

CREATE INDEX label_batches_waiting_idx ON label_batches (created_at) WHERE finished_at IS NULL;
CREATE INDEX label_batches_created_idx ON label_batches (company_id, created_at);

CREATE TABLE label_files (
    company_id  bigint  NOT NULL,
    batch_id    text    COLLATE "C" NOT NULL,
    number      integer NOT NULL,
    content     bytea   NOT NULL,
    CONSTRAINT label_files_pkey PRIMARY KEY (company_id, batch_id, number),
    CONSTRAINT label_files_batch_fkey FOREIGN KEY (company_id, batch_id)
        REFERENCES label_batches (company_id, id) ON DELETE CASCADE
);
