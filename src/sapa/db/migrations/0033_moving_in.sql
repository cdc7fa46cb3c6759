-- Files of other systems are imported: where each comes from, how it is read, and saved mappings of columns.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE imports
    ADD COLUMN source         text    COLLATE "C",
    ADD COLUMN effects        boolean NOT NULL DEFAULT true,
    -- How the file is read before it is imported; null for a file that is read as it is.
    ADD COLUMN reading        json,
    -- Bytes of the converted file, which the position then counts in; null until it is converted.
    ADD COLUMN converted_size bigint;

ALTER TABLE imports DROP CONSTRAINT imports_format_check;
ALTER TABLE imports DROP CONSTRAINT imports_status_check;
ALTER TABLE imports
    ADD CONSTRAINT imports_format_check CHECK (format IN ('csv', 'ndjson', 'xlsx')),
    ADD CONSTRAINT imports_status_check CHECK (
        status IN ('draft', 'queued', 'running', 'succeeded', 'partial', 'failed')),
    ADD CONSTRAINT imports_converted_check CHECK (converted_size IS NULL OR reading IS NOT NULL);

-- False for an order that was brought in as history: it never earns points, whatever happens to it later.
ALTER TABLE orders ADD COLUMN earns boolean NOT NULL DEFAULT true;

-- The lines of orders in files name their products by SKU.
CREATE INDEX variants_sku_idx ON variants (company_id, inventory_sku) WHERE inventory_sku IS NOT NULL;

-- Which column of a company's own file is which field.
CREATE TABLE import_mappings (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    resource    text           COLLATE "C" NOT NULL,
    name        text           NOT NULL,
    mapping     json           NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT import_mappings_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT import_mappings_resource_check CHECK (resource IN ('customers', 'products', 'orders'))
);

CREATE UNIQUE INDEX import_mappings_name_key ON import_mappings (company_id, resource, name);
CREATE INDEX import_mappings_created_idx ON import_mappings (company_id, created_at, id);
