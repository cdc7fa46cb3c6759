-- The schema as it stands: the readable truth. Migrations are its history, and a test holds the two together.
--
-- Rules that keep it shardable by company: company_id is the first column of every primary key, unique index and
-- foreign key of a company's tables; no triggers; nothing points from a company's table into the directory.

CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS btree_gin;


-- Directory: few, small tables that every process may read whole.

CREATE TABLE organisations (
    id          bigint         GENERATED ALWAYS AS IDENTITY,
    name        text           NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT organisations_pkey PRIMARY KEY (id),
    CONSTRAINT organisations_name_key UNIQUE (name)
);

-- One row per environment: its company_id is the company in every other table, so that test data is kept apart
-- by the same predicate as another company's.
CREATE TABLE companies (
    company_id       bigint         GENERATED ALWAYS AS IDENTITY,
    organisation_id  bigint         NOT NULL,
    environment      text           NOT NULL,
    region           text           NOT NULL DEFAULT 'ID',
    currency         text           NOT NULL DEFAULT 'IDR',
    clock_offset     interval       NOT NULL DEFAULT '0',
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    -- Reports follow it.
    time_zone        text           NOT NULL DEFAULT 'Asia/Jakarta',
    language         text           NOT NULL DEFAULT 'id',
    -- Whether a cart that a customer sends becomes an order.
    cart_orders      boolean        NOT NULL DEFAULT false,
    CONSTRAINT companies_pkey PRIMARY KEY (company_id),
    CONSTRAINT companies_organisation_fkey FOREIGN KEY (organisation_id) REFERENCES organisations (id),
    CONSTRAINT companies_environment_key UNIQUE (organisation_id, environment),
    CONSTRAINT companies_environment_check CHECK (environment IN ('live', 'test')),
    CONSTRAINT companies_language_check CHECK (language IN ('en', 'id')),
    CONSTRAINT companies_clock_check CHECK (
        clock_offset BETWEEN '0' AND interval '10 years' AND (environment = 'test' OR clock_offset = '0'))
);
-- Few test clocks are moved: the worker looks for what is due by them without reading all companies.
CREATE INDEX companies_moved_idx ON companies (company_id) WHERE clock_offset > interval '0';

CREATE TABLE api_keys (
    id            text           COLLATE "C" NOT NULL,
    company_id    bigint         NOT NULL,
    name          text           NOT NULL,
    hash          bytea          NOT NULL,
    prefix        text           NOT NULL,
    last_four     text           NOT NULL,
    scopes        text[]         NOT NULL,
    products      text[]         NOT NULL,
    allow_list    text[]         NOT NULL,
    rate_limit    integer        NOT NULL,
    status        text           NOT NULL DEFAULT 'active',
    replaced_by   text           COLLATE "C",
    created_at    timestamptz(3) NOT NULL DEFAULT now(),
    expires_at    timestamptz(3),
    last_used_at  timestamptz(3),
    last_used_ip  text,
    allows_mcp    boolean        NOT NULL DEFAULT true,
    CONSTRAINT api_keys_pkey PRIMARY KEY (id),
    CONSTRAINT api_keys_company_fkey FOREIGN KEY (company_id) REFERENCES companies (company_id),
    CONSTRAINT api_keys_hash_key UNIQUE (hash),
    CONSTRAINT api_keys_status_check CHECK (status IN ('active', 'expired', 'revoked')),
    CONSTRAINT api_keys_rate_limit_check CHECK (rate_limit > 0)
);

CREATE INDEX api_keys_company_idx ON api_keys (company_id, created_at);

-- Who may listen to a company's events from a developer's machine.
CREATE TABLE developer_tokens (
    hash        bytea          NOT NULL,
    company_id  bigint         NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    expires_at  timestamptz(3) NOT NULL,
    CONSTRAINT developer_tokens_pkey PRIMARY KEY (hash),
    CONSTRAINT developer_tokens_company_fkey FOREIGN KEY (company_id) REFERENCES companies (company_id)
);

-- Work that only one worker may do at a time. The epoch grows with every new holder.
CREATE TABLE leases (
    name        text        NOT NULL,
    holder      text        NOT NULL,
    epoch       bigint      NOT NULL DEFAULT 1,
    expires_at  timestamptz NOT NULL,
    CONSTRAINT leases_pkey PRIMARY KEY (name)
);

-- At most one row: the last time that all secrets were sealed anew, and how far it got.
CREATE TABLE secret_rotations (
    key_id        text           COLLATE "C" NOT NULL,
    requested_at  timestamptz(3) NOT NULL DEFAULT now(),
    finished_at   timestamptz(3),
    -- The last value that was looked at, in the order of tables, companies and positions.
    sealed_table  text           COLLATE "C" NOT NULL DEFAULT '',
    company_id    bigint         NOT NULL DEFAULT 0,
    position      text           COLLATE "C" NOT NULL DEFAULT '',
    resealed      bigint         NOT NULL DEFAULT 0,
    -- Values that no key of the installation opens.
    unreadable    bigint         NOT NULL DEFAULT 0,
    CONSTRAINT secret_rotations_pkey PRIMARY KEY (key_id)
);

-- When backups were made, and how it went. The owner writes them.
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


-- The edge.

-- One row per key. Unlogged: a crash of PostgreSQL forgets the running minute, and nothing else.
CREATE UNLOGGED TABLE rate_windows (
    company_id    bigint      NOT NULL,
    key_id        text        COLLATE "C" NOT NULL,
    window_start  timestamptz NOT NULL,
    used          integer     NOT NULL,
    granted       integer     NOT NULL,
    CONSTRAINT rate_windows_pkey PRIMARY KEY (company_id, key_id)
) WITH (fillfactor = 50);

CREATE TABLE idempotency_records (
    company_id   bigint         NOT NULL,
    key          text           COLLATE "C" NOT NULL,
    target       text           COLLATE "C" NOT NULL,
    fingerprint  bytea          NOT NULL,
    status       smallint,
    body         bytea,
    created_at   timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT idempotency_records_pkey PRIMARY KEY (company_id, key, target)
);

CREATE INDEX idempotency_records_created_idx ON idempotency_records (created_at);


-- Exact totals: the statement that changes a row appends its delta, the worker folds deltas into cells.

CREATE TABLE counter_cells (
    company_id  bigint NOT NULL,
    counter     text   COLLATE "C" NOT NULL,
    cell        text   COLLATE "C" NOT NULL,
    total       bigint NOT NULL,
    CONSTRAINT counter_cells_pkey PRIMARY KEY (company_id, counter, cell)
);

CREATE INDEX counter_cells_webhook_queue_idx ON counter_cells (company_id) WHERE counter = 'webhook_queue';

CREATE TABLE counter_deltas (
    company_id  bigint      NOT NULL,
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    counter     text        COLLATE "C" NOT NULL,
    cell        text        COLLATE "C" NOT NULL,
    delta       integer     NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT counter_deltas_pkey PRIMARY KEY (company_id, counter, id)
);


-- The log of API calls: append-only, partitioned by day.

CREATE TABLE api_calls (
    company_id    bigint         NOT NULL,
    called_at     timestamptz(3) NOT NULL,
    request_id    text           COLLATE "C" NOT NULL,
    key_id        text           COLLATE "C" NOT NULL,
    method        text           COLLATE "C" NOT NULL,
    -- The path with the names of its parameters, never their values.
    route         text           COLLATE "C" NOT NULL,
    status        smallint       NOT NULL,
    code          text           COLLATE "C",
    address       text           COLLATE "C" NOT NULL,
    microseconds  integer        NOT NULL,
    CONSTRAINT api_calls_pkey PRIMARY KEY (company_id, called_at, request_id)
) PARTITION BY RANGE (called_at);

CREATE TABLE api_calls_default PARTITION OF api_calls DEFAULT;

CREATE INDEX api_calls_key_idx ON api_calls (company_id, key_id, called_at, request_id);
CREATE INDEX api_calls_route_idx ON api_calls (company_id, route, called_at, request_id);
CREATE INDEX api_calls_error_idx ON api_calls (company_id, called_at, request_id) WHERE status >= 400;
CREATE INDEX api_calls_request_idx ON api_calls (company_id, request_id);


-- Events: append-only, the exact bytes to deliver. Partitioned by day; old days are dropped whole.

CREATE TABLE events (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    -- Events of one resource are recorded under its row's lock, so their numbers tell their order.
    number       bigint         GENERATED ALWAYS AS IDENTITY,
    kind         text           COLLATE "C" NOT NULL,
    resource_id  text           COLLATE "C" NOT NULL,
    body         bytea          NOT NULL,
    created_at   timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
    -- The traced call that recorded it; its webhooks continue the trace.
    traceparent  text           COLLATE "C" DEFAULT current_setting('sapa.traceparent', true),
    CONSTRAINT events_pkey PRIMARY KEY (company_id, created_at, id)
) PARTITION BY RANGE (created_at);

CREATE TABLE events_default PARTITION OF events DEFAULT;


-- Customers.

CREATE TABLE customers (
    company_id           bigint         NOT NULL,
    id                   text           COLLATE "C" NOT NULL,
    external_id          text           COLLATE "C",
    email                text,
    -- Case-folded by us, so that uniqueness does not depend on the database's locale.
    email_key            text           COLLATE "C",
    phone_number         text           COLLATE "C",
    first_name           text,
    last_name            text,
    image_url            text,
    tags                 text[]         NOT NULL,
    addresses            json           NOT NULL,
    additional_data      json           NOT NULL,
    subscription_status  json           NOT NULL,
    -- Folded name, e-mail and the digits of the phone, a line each: what a search looks through.
    search_text          text           NOT NULL,
    created_at           timestamptz(3) NOT NULL DEFAULT now(),
    updated_at           timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT customers_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT customers_reachable_check CHECK (email IS NOT NULL OR phone_number IS NOT NULL)
);

CREATE UNIQUE INDEX customers_email_key ON customers (company_id, email_key);
CREATE UNIQUE INDEX customers_phone_number_key ON customers (company_id, phone_number);
CREATE UNIQUE INDEX customers_external_id_key ON customers (company_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX customers_updated_idx ON customers (company_id, updated_at, id);
CREATE INDEX customers_created_idx ON customers (company_id, created_at, id);
CREATE INDEX customers_first_name_idx ON customers (company_id, lower(first_name), id);
CREATE INDEX customers_last_name_idx ON customers (company_id, lower(last_name), id);
CREATE INDEX customers_email_idx ON customers (company_id, email_key, id);
CREATE INDEX customers_search_idx ON customers USING gin (company_id, search_text gin_trgm_ops);
CREATE INDEX customers_tags_idx ON customers USING gin (company_id, tags);


-- Products and orders. Amounts are kept in their shortest form, so that they are printed as they are stored.

CREATE TABLE products (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    -- The caller's own id; ours where none was given.
    product_id   text           COLLATE "C" NOT NULL,
    name         text           NOT NULL,
    description  text,
    media        text,
    medias       text[]         NOT NULL,
    status       text           COLLATE "C" NOT NULL,
    options      json           NOT NULL,
    tags         text[]         NOT NULL,
    types        text[]         NOT NULL,
    -- Folded name, own id and SKUs, a line each: what a search looks through.
    search_text  text           NOT NULL,
    created_at   timestamptz(3) NOT NULL DEFAULT now(),
    updated_at   timestamptz(3) NOT NULL DEFAULT now(),
    -- Computed from the variants: the lowest price; the stock of all together and of the scarcest one, null where no
    -- stock is tracked.
    least_price  numeric,
    stock        bigint,
    least_stock  integer,
    CONSTRAINT products_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT products_status_check CHECK (status IN ('active', 'draft', 'archived'))
);

CREATE UNIQUE INDEX products_product_id_key ON products (company_id, product_id);
CREATE INDEX products_created_idx ON products (company_id, created_at, id);
CREATE INDEX products_status_idx ON products (company_id, status, created_at, id);
CREATE INDEX products_name_idx ON products (company_id, lower(name), id) INCLUDE (status);
CREATE INDEX products_price_idx ON products (company_id, least_price, id) INCLUDE (status);
CREATE INDEX products_stock_idx ON products (company_id, stock, id) INCLUDE (status);
CREATE INDEX products_least_stock_idx ON products (company_id, least_stock) INCLUDE (status);
CREATE INDEX products_search_idx ON products USING gin (company_id, search_text gin_trgm_ops);
CREATE INDEX products_tags_idx ON products USING gin (company_id, tags);

CREATE TABLE variants (
    company_id          bigint  NOT NULL,
    id                  text    COLLATE "C" NOT NULL,
    product_id          text    COLLATE "C" NOT NULL,
    position            integer NOT NULL,
    key                 text    NOT NULL,
    title               text    NOT NULL,
    price               numeric NOT NULL,
    compare_at_price    numeric,
    inventory_sku       text,
    media               text,
    -- Null where stock is not tracked.
    inventory_quantity  integer,
    CONSTRAINT variants_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT variants_product_fkey FOREIGN KEY (company_id, product_id)
        REFERENCES products (company_id, id) ON DELETE CASCADE,
    CONSTRAINT variants_price_check CHECK (price >= 0 AND scale(price) = min_scale(price)),
    CONSTRAINT variants_compare_at_price_check CHECK (
        compare_at_price >= 0 AND scale(compare_at_price) = min_scale(compare_at_price)),
    CONSTRAINT variants_inventory_quantity_check CHECK (inventory_quantity >= 0)
);

CREATE INDEX variants_product_idx ON variants (company_id, product_id, position);
-- The lines of orders in files name their products by SKU.
CREATE INDEX variants_sku_idx ON variants (company_id, inventory_sku) WHERE inventory_sku IS NOT NULL;


-- The last order number of each company.
CREATE TABLE order_numbers (
    company_id  bigint NOT NULL,
    last        bigint NOT NULL,
    CONSTRAINT order_numbers_pkey PRIMARY KEY (company_id)
) WITH (fillfactor = 50);

-- An order is a document: its line items are kept as they were when it was placed, its customer as last known.
CREATE TABLE orders (
    company_id          bigint         NOT NULL,
    id                  text           COLLATE "C" NOT NULL,
    -- The caller's own id; ours where none was given.
    order_id            text           COLLATE "C" NOT NULL,
    order_number        text           COLLATE "C" NOT NULL,
    status              text           COLLATE "C" NOT NULL,
    fulfillment_status  text           COLLATE "C" NOT NULL,
    financial_status    text           COLLATE "C" NOT NULL,
    total               numeric        NOT NULL,
    currency            text           COLLATE "C" NOT NULL,
    notes               text,
    customer            json,
    line_items          json           NOT NULL,
    shipping_address    json,
    tags                text[]         NOT NULL,
    created_at          timestamptz(3) NOT NULL DEFAULT now(),
    updated_at          timestamptz(3) NOT NULL DEFAULT now(),
    customer_id         text           COLLATE "C",
    -- The customer's folded name: what a search looks through.
    customer_text       text           NOT NULL,
    -- The status to come back to.
    archived_from       text           COLLATE "C",
    restocked           boolean        NOT NULL DEFAULT false,
    -- Units taken from stock by variant: what goes back, whatever is tracked by then.
    taken               json           NOT NULL DEFAULT '{}',
    -- The counter's cell and the list's: one index serves every combination of the three.
    cell                text           COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (status || '/' || fulfillment_status || '/' || financial_status) STORED,
    -- Null in the four amounts that depend on others: an order of an earlier version, which the worker completes.
    subtotal            numeric,
    discount_total      numeric        NOT NULL DEFAULT 0,
    shipping_total      numeric        NOT NULL DEFAULT 0,
    fee_total           numeric        NOT NULL DEFAULT 0,
    tax_total           numeric        NOT NULL DEFAULT 0,
    total_paid          numeric,
    total_refunded      numeric,
    outstanding         numeric,
    -- What refunds took off the parts of the total.
    removed_goods       numeric        NOT NULL DEFAULT 0,
    removed_shipping    numeric        NOT NULL DEFAULT 0,
    removed_fees        numeric        NOT NULL DEFAULT 0,
    removed_tax         numeric        NOT NULL DEFAULT 0,
    discounts           json           NOT NULL DEFAULT '[]',
    shipping_lines      json           NOT NULL DEFAULT '[]',
    fees                json           NOT NULL DEFAULT '[]',
    tax_lines           json           NOT NULL DEFAULT '[]',
    payments            json           NOT NULL DEFAULT '[]',
    refunds             json           NOT NULL DEFAULT '[]',
    fulfillments        json           NOT NULL DEFAULT '[]',
    placed_by           json,
    -- The cell for which payments, refunds and fulfilments were recorded. Code of an earlier version changes the
    -- statuses and records nothing: where the two differ, the worker does that.
    recorded_cell       text           COLLATE "C",
    -- False for an order that was brought in as history: it never earns points, whatever happens to it later.
    earns               boolean        NOT NULL DEFAULT true,
    CONSTRAINT orders_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT orders_status_check CHECK (status IN ('active', 'archived', 'cancelled', 'refunded')),
    CONSTRAINT orders_fulfillment_status_check CHECK (fulfillment_status IN ('unfulfilled', 'fulfilled')),
    CONSTRAINT orders_financial_status_check CHECK (
        financial_status IN ('pending', 'partially_paid', 'paid', 'partially_refunded', 'refunded')),
    CONSTRAINT orders_archived_from_check CHECK ((status = 'archived') = (archived_from IS NOT NULL)),
    CONSTRAINT orders_total_check CHECK (total >= 0 AND scale(total) = min_scale(total)),
    CONSTRAINT orders_amounts_check CHECK (
        discount_total BETWEEN 0 AND subtotal AND shipping_total >= 0 AND fee_total >= 0 AND tax_total >= 0
        AND total BETWEEN subtotal - discount_total + shipping_total + fee_total
                      AND subtotal - discount_total + shipping_total + fee_total + tax_total),
    CONSTRAINT orders_balance_check CHECK (
        total_refunded BETWEEN 0 AND total_paid
        AND removed_goods >= 0 AND removed_shipping >= 0 AND removed_fees >= 0 AND removed_tax >= 0
        AND removed_goods + removed_shipping + removed_fees + removed_tax <= total
        AND outstanding = total - removed_goods - removed_shipping - removed_fees - removed_tax
                          - (total_paid - total_refunded))
);

CREATE UNIQUE INDEX orders_order_id_key ON orders (company_id, order_id);
CREATE UNIQUE INDEX orders_order_number_key ON orders (company_id, order_number);
-- A search by the start of an id ignores case.
CREATE INDEX orders_own_id_idx ON orders (company_id, lower(order_id))
    INCLUDE (order_id, customer_text, created_at, id);
CREATE INDEX orders_order_number_idx ON orders (company_id, lower(order_number));
-- With what a report adds up, so that it reads the index alone.
CREATE INDEX orders_sales_idx ON orders (company_id, created_at, id)
    INCLUDE (currency, status, archived_from, total, subtotal, discount_total, shipping_total, fee_total,
             removed_goods, removed_shipping, removed_fees, removed_tax);
CREATE INDEX orders_unrecorded_idx ON orders (company_id, recorded_cell) WHERE recorded_cell IS DISTINCT FROM cell;
CREATE INDEX orders_cell_idx ON orders (company_id, cell, created_at, id);
-- With the cell, so that a filtered list reads the index alone.
CREATE INDEX orders_total_idx ON orders (company_id, total, id) INCLUDE (cell);
CREATE INDEX orders_customer_idx ON orders (company_id, customer_id, created_at, id);
CREATE INDEX orders_search_idx ON orders USING gin (company_id, customer_text gin_trgm_ops);
-- A search by one or two letters: the words of the name, read without their rows.
CREATE INDEX orders_first_word_idx ON orders (company_id, customer_text COLLATE "C") INCLUDE (created_at, id);
CREATE INDEX orders_second_word_idx ON orders (company_id, (split_part(customer_text, ' ', 2)) COLLATE "C")
    INCLUDE (customer_text, created_at, id) WHERE split_part(customer_text, ' ', 2) <> '';
CREATE INDEX orders_third_word_idx ON orders (company_id, (split_part(customer_text, ' ', 3)) COLLATE "C")
    INCLUDE (customer_text, created_at, id) WHERE split_part(customer_text, ' ', 3) <> '';
CREATE INDEX orders_fourth_word_idx ON orders (company_id, (split_part(customer_text, ' ', 4)) COLLATE "C")
    INCLUDE (customer_text, created_at, id) WHERE split_part(customer_text, ' ', 4) <> '';

-- Lines of an order of an earlier version, with the fields that they did not have then. It has a path of its own because
-- the planner would parse it for every statement that reads orders otherwise: it may inline functions without one.
CREATE FUNCTION complete_line_items(line_items json, fulfillment_status text) RETURNS json
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog AS $$
    SELECT coalesce(('[' || string_agg(
               left(old.line::text, -1) || ',"discount":null,"total":' || old.total
               || ',"discountAllocation":0,"tax":0,"charged":' || old.total || ',"fulfilledQuantity":'
               || CASE WHEN fulfillment_status = 'fulfilled' THEN old.line ->> 'quantity' ELSE '0' END
               || ',"refundedQuantity":0}', ',' ORDER BY old.place) || ']')::json, line_items)
      FROM (SELECT line, place,
                   trim_scale((line ->> 'price')::numeric * (line ->> 'quantity')::integer)::text AS total
              FROM json_array_elements(line_items) WITH ORDINALITY AS stored (line, place)) AS old
$$;

REVOKE ALL ON FUNCTION complete_line_items(json, text) FROM PUBLIC;

-- Payments and refunds by their own time, for the report; the orders hold them in full. A voided payment is deleted.
CREATE TABLE order_transactions (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    order_id     text           COLLATE "C" NOT NULL,
    kind         text           COLLATE "C" NOT NULL,
    amount       numeric        NOT NULL,
    currency     text           COLLATE "C" NOT NULL,
    -- Null for a refund, and for a payment that was recorded by setting the status.
    method       text,
    occurred_at  timestamptz(3) NOT NULL,
    CONSTRAINT order_transactions_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT order_transactions_kind_check CHECK (kind IN ('payment', 'refund')),
    CONSTRAINT order_transactions_amount_check CHECK (amount > 0 AND scale(amount) = min_scale(amount))
);

CREATE INDEX order_transactions_occurred_idx ON order_transactions (company_id, occurred_at, id)
    INCLUDE (kind, currency, amount);

-- Who changed what of an order. Its first entry, that it was placed, is read from the order itself.
CREATE TABLE order_history (
    company_id  bigint         NOT NULL,
    order_id    text           COLLATE "C" NOT NULL,
    number      bigint         GENERATED ALWAYS AS IDENTITY,
    id          text           COLLATE "C" NOT NULL,
    action      text           COLLATE "C" NOT NULL,
    actor       json           NOT NULL,
    -- The payment, refund or fulfilment that was recorded.
    reference   text           COLLATE "C",
    changes     json           NOT NULL,
    created_at  timestamptz(3) NOT NULL,
    CONSTRAINT order_history_pkey PRIMARY KEY (company_id, order_id, number)
);

-- An order that is prepared and priced, and takes nothing from the stock until it is completed.
CREATE TABLE draft_orders (
    company_id        bigint         NOT NULL,
    id                text           COLLATE "C" NOT NULL,
    status            text           COLLATE "C" NOT NULL DEFAULT 'open',
    -- The order that it became.
    order_id          text           COLLATE "C",
    customer_id       text           COLLATE "C",
    customer          json,
    shipping_address  json,
    currency          text           COLLATE "C" NOT NULL,
    notes             text,
    tags              text[]         NOT NULL,
    line_items        json           NOT NULL,
    discounts         json           NOT NULL,
    shipping_lines    json           NOT NULL,
    fees              json           NOT NULL,
    tax_lines         json           NOT NULL,
    subtotal          numeric        NOT NULL,
    discount_total    numeric        NOT NULL,
    shipping_total    numeric        NOT NULL,
    fee_total         numeric        NOT NULL,
    tax_total         numeric        NOT NULL,
    total             numeric        NOT NULL,
    created_at        timestamptz(3) NOT NULL DEFAULT now(),
    updated_at        timestamptz(3) NOT NULL DEFAULT now(),
    completed_at      timestamptz(3),
    CONSTRAINT draft_orders_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT draft_orders_status_check CHECK (status IN ('open', 'completed')),
    CONSTRAINT draft_orders_completed_check CHECK (
        (status = 'completed') = (order_id IS NOT NULL) AND (status = 'completed') = (completed_at IS NOT NULL)),
    CONSTRAINT draft_orders_amounts_check CHECK (
        discount_total BETWEEN 0 AND subtotal AND shipping_total >= 0 AND fee_total >= 0 AND tax_total >= 0
        AND total BETWEEN subtotal - discount_total + shipping_total + fee_total
                      AND subtotal - discount_total + shipping_total + fee_total + tax_total)
);

CREATE INDEX draft_orders_created_idx ON draft_orders (company_id, created_at, id);
CREATE INDEX draft_orders_status_idx ON draft_orders (company_id, status, created_at, id);

-- A customer whose name changed and who has very many orders: what those before the position are still to show. The row
-- goes with the last of them.
CREATE TABLE customer_copies (
    company_id     bigint         NOT NULL,
    customer_id    text           COLLATE "C" NOT NULL,
    customer       json           NOT NULL,
    customer_text  text           NOT NULL,
    before_at      timestamptz(3) NOT NULL,
    before_id      text           COLLATE "C" NOT NULL,
    touched_at     timestamptz    NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT customer_copies_pkey PRIMARY KEY (company_id, customer_id)
);


-- Imports: files on their way in, and how far each has come.

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
    source        text           COLLATE "C",
    effects       boolean        NOT NULL DEFAULT true,
    -- How the file is read before it is imported; null for a file that is read as it is.
    reading       json,
    -- Bytes of the converted file, which the position then counts in; null until it is converted.
    converted_size bigint,
    CONSTRAINT imports_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT imports_resource_check CHECK (resource IN ('customers', 'products', 'orders')),
    CONSTRAINT imports_format_check CHECK (format IN ('csv', 'ndjson', 'xlsx')),
    CONSTRAINT imports_status_check CHECK (
        status IN ('draft', 'queued', 'running', 'succeeded', 'partial', 'failed')),
    CONSTRAINT imports_converted_check CHECK (converted_size IS NULL OR reading IS NOT NULL)
);

CREATE INDEX imports_created_idx ON imports (company_id, created_at, id);
CREATE INDEX imports_unfinished_idx ON imports (updated_at) WHERE finished_at IS NULL;
-- A file that the command reads is imported once at a time; read in another format it is another file.
CREATE UNIQUE INDEX imports_file_key ON imports (company_id, resource, format, fingerprint, dry_run)
    WHERE finished_at IS NULL AND NOT is_upload;

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


-- Webhooks.

CREATE TABLE webhook_endpoints (
    company_id       bigint         NOT NULL,
    id               text           COLLATE "C" NOT NULL,
    url              text           NOT NULL,
    -- Empty: all kinds.
    kinds            text[]         COLLATE "C" NOT NULL,
    description      text,
    status           text           COLLATE "C" NOT NULL DEFAULT 'active',
    -- Why it is suspended, for people.
    reason           text,
    -- Secrets and headers are sealed with the installation's key.
    headers          bytea,
    secret           bytea          NOT NULL,
    previous_secret  bytea,
    previous_until   timestamptz(3),
    -- Since when it gets nothing, and how it is to catch up once transactions that began before are over.
    missed_since     timestamptz(3),
    catch_up         text           COLLATE "C",
    resumed_at       timestamptz(3),
    -- How far that has come, as its job keeps it.
    progress         text,
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    updated_at       timestamptz(3) NOT NULL DEFAULT now(),
    -- While it is suspended, it is probed and resumes with the first success.
    auto_resume      boolean        NOT NULL DEFAULT true,
    suspended_at     timestamptz(3),
    probes           smallint       NOT NULL DEFAULT 0,
    -- By company time; none while it is not suspended, and once probing has ended.
    next_probe_at    timestamptz(3),
    CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT webhook_endpoints_status_check CHECK (status IN ('active', 'paused', 'suspended')),
    CONSTRAINT webhook_endpoints_catch_up_check CHECK (catch_up IN ('all', 'latest', 'skip'))
);

CREATE INDEX webhook_endpoints_catch_up_idx ON webhook_endpoints (company_id) WHERE catch_up IS NOT NULL;

CREATE INDEX webhook_endpoints_probe_idx ON webhook_endpoints (company_id) WHERE next_probe_at IS NOT NULL;

-- Who serves an endpoint now, and its run of failures. No other index, so that every change stays in its page.
CREATE TABLE webhook_lanes (
    company_id   bigint      NOT NULL,
    endpoint_id  text        COLLATE "C" NOT NULL,
    owner        text,
    epoch        bigint      NOT NULL DEFAULT 0,
    owner_until  timestamptz NOT NULL DEFAULT '-infinity',
    failures     integer     NOT NULL DEFAULT 0,
    CONSTRAINT webhook_lanes_pkey PRIMARY KEY (company_id, endpoint_id),
    CONSTRAINT webhook_lanes_endpoint_fkey FOREIGN KEY (company_id, endpoint_id)
        REFERENCES webhook_endpoints (company_id, id) ON DELETE CASCADE
) WITH (fillfactor = 50);

-- What is still to be delivered: one narrow row per event and endpoint, gone once it is settled.
CREATE TABLE webhook_queue (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    endpoint_id  text           COLLATE "C" NOT NULL,
    due_at       timestamptz    NOT NULL,
    event_id     text           COLLATE "C" NOT NULL,
    event_at     timestamptz(3) NOT NULL,
    attempt      smallint       NOT NULL DEFAULT 1,
    CONSTRAINT webhook_queue_pkey PRIMARY KEY (company_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);

CREATE INDEX webhook_queue_lane_idx ON webhook_queue (company_id, endpoint_id, due_at, id);

-- Retries that are due behind a long backlog.
CREATE INDEX webhook_queue_retries_idx ON webhook_queue (company_id, endpoint_id, due_at) WHERE attempt > 1;

-- Deliveries that cannot be found by the time of their event.
CREATE INDEX webhook_queue_moved_idx ON webhook_queue (company_id, endpoint_id, event_id) WHERE due_at <> event_at;

-- The newest event of each resource, gathered for an endpoint that catches up with nothing else.
CREATE TABLE webhook_newest (
    company_id   bigint         NOT NULL,
    endpoint_id  text           COLLATE "C" NOT NULL,
    resource_id  text           COLLATE "C" NOT NULL,
    number       bigint         NOT NULL,
    event_id     text           COLLATE "C" NOT NULL,
    event_at     timestamptz(3) NOT NULL,
    CONSTRAINT webhook_newest_pkey PRIMARY KEY (company_id, endpoint_id, resource_id),
    CONSTRAINT webhook_newest_endpoint_fkey FOREIGN KEY (company_id, endpoint_id)
        REFERENCES webhook_endpoints (company_id, id) ON DELETE CASCADE
);

CREATE INDEX webhook_newest_event_idx ON webhook_newest (company_id, endpoint_id, event_at, event_id);

-- Append-only, partitioned by day. The last attempt of a delivery tells its outcome.
CREATE TABLE webhook_attempts (
    company_id    bigint         NOT NULL,
    endpoint_id   text           COLLATE "C" NOT NULL,
    started_at    timestamptz(3) NOT NULL,
    delivery_id   text           COLLATE "C" NOT NULL,
    number        smallint       NOT NULL,
    event_id      text           COLLATE "C" NOT NULL,
    event_at      timestamptz(3) NOT NULL,
    kind          text           COLLATE "C" NOT NULL,
    milliseconds  integer        NOT NULL,
    status        smallint,
    -- What went wrong, as a class for programs and a sentence for people.
    error         text           COLLATE "C",
    message       text,
    address       text,
    response      bytea,
    outcome       text           COLLATE "C" NOT NULL,
    -- Sent while its endpoint was suspended, outside the schedule of the delivery.
    is_probe      boolean        NOT NULL DEFAULT false,
    CONSTRAINT webhook_attempts_pkey PRIMARY KEY (company_id, endpoint_id, started_at, delivery_id, number),
    CONSTRAINT webhook_attempts_outcome_check CHECK (outcome IN ('delivered', 'retrying', 'failed', 'skipped'))
) PARTITION BY RANGE (started_at);

CREATE TABLE webhook_attempts_default PARTITION OF webhook_attempts DEFAULT;

CREATE INDEX webhook_attempts_delivery_idx ON webhook_attempts (company_id, delivery_id);

-- What went wrong is looked for among much that did not.
CREATE INDEX webhook_attempts_failed_idx ON webhook_attempts (company_id, delivery_id)
    WHERE outcome IN ('failed', 'skipped');

-- What a company's people should know of, such as an endpoint that was suspended.
CREATE TABLE notices (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    kind         text           COLLATE "C" NOT NULL,
    resource_id  text           COLLATE "C" NOT NULL,
    message      text           NOT NULL,
    created_at   timestamptz(3) NOT NULL DEFAULT now(),
    -- When owners are to be told by mail; none once they were.
    mail_due_at  timestamptz,
    mail_tries   smallint       NOT NULL DEFAULT 0,
    CONSTRAINT notices_pkey PRIMARY KEY (company_id, id)
);

CREATE INDEX notices_mail_idx ON notices (company_id) WHERE mail_due_at IS NOT NULL;


-- The customer timeline: what happened to a customer, written with its cause.

CREATE TABLE timeline_entries (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    customer_id  text           COLLATE "C" NOT NULL,
    category     text           COLLATE "C" NOT NULL,
    type         text           COLLATE "C" NOT NULL,
    source       text           NOT NULL,
    edit_log     text,
    notes        text,
    created_at   timestamptz(3) NOT NULL,
    updated_at   timestamptz(3) NOT NULL,
    is_counted   boolean        NOT NULL DEFAULT false,
    -- The person of the console who caused it, where it is known.
    actor_name   text,
    CONSTRAINT timeline_entries_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT timeline_entries_category_check CHECK (category IN ('support', 'loyalty', 'system'))
);

CREATE INDEX timeline_entries_customer_idx ON timeline_entries (company_id, customer_id, created_at, id);
CREATE INDEX timeline_entries_category_idx ON timeline_entries (company_id, customer_id, category, created_at, id);
CREATE INDEX timeline_entries_uncounted_idx ON timeline_entries (company_id, customer_id, category)
    WHERE NOT is_counted;


-- The loyalty ledger. Points are whole numbers. Entries, lot moves and holds are append-only.

CREATE TABLE loyalty_settings (
    company_id               bigint         NOT NULL,
    enabled                  boolean        NOT NULL DEFAULT true,
    earn_on                  text           COLLATE "C" NOT NULL DEFAULT 'paid',
    rounding                 text           COLLATE "C" NOT NULL DEFAULT 'floor',
    -- Null: points never expire.
    expiry_months            integer,
    reservation_ttl_seconds  integer        NOT NULL DEFAULT 900,
    updated_at               timestamptz(3) NOT NULL DEFAULT now(),
    -- The tiers of now; earlier ones stay for the orders that earned by them.
    tiers_version            integer        NOT NULL DEFAULT 1,
    CONSTRAINT loyalty_settings_pkey PRIMARY KEY (company_id),
    CONSTRAINT loyalty_settings_earn_on_check CHECK (earn_on IN ('paid', 'fulfilled', 'created')),
    CONSTRAINT loyalty_settings_rounding_check CHECK (rounding IN ('floor', 'round', 'ceil'))
);

CREATE TABLE loyalty_tiers (
    company_id       bigint  NOT NULL,
    currency_amount  numeric NOT NULL,
    points           bigint  NOT NULL,
    version          integer NOT NULL DEFAULT 1,
    CONSTRAINT loyalty_tiers_pkey PRIMARY KEY (company_id, version, currency_amount),
    CONSTRAINT loyalty_tiers_check CHECK (currency_amount > 0 AND points > 0)
);

-- One per customer, made at its first entry. Every write to the ledger begins with this row's lock.
CREATE TABLE loyalty_wallets (
    company_id       bigint         NOT NULL,
    id               text           COLLATE "C" NOT NULL,
    customer_id      text           COLLATE "C" NOT NULL,
    available        bigint         NOT NULL DEFAULT 0,
    reserved         bigint         NOT NULL DEFAULT 0,
    lifetime_earned  bigint         NOT NULL DEFAULT 0,
    lifetime_burned  bigint         NOT NULL DEFAULT 0,
    -- The number of its last entry.
    version          bigint         NOT NULL DEFAULT 0,
    last_ledger_at   timestamptz(3),
    created_at       timestamptz(3) NOT NULL,
    updated_at       timestamptz(3) NOT NULL,
    CONSTRAINT loyalty_wallets_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT loyalty_wallets_customer_key UNIQUE (company_id, customer_id),
    CONSTRAINT loyalty_wallets_balance_check CHECK (
        available >= 0 AND reserved >= 0 AND lifetime_earned >= 0 AND lifetime_burned >= 0
        AND lifetime_earned - lifetime_burned = available + reserved),
    CONSTRAINT loyalty_wallets_size_check CHECK (lifetime_earned <= 1000000000000000000)
) WITH (fillfactor = 80);

-- Append-only. The running numbers of a wallet; the instants of one customer are unique, so that one can be a cursor.
CREATE TABLE loyalty_entries (
    company_id       bigint         NOT NULL,
    id               text           COLLATE "C" NOT NULL,
    wallet_id        text           COLLATE "C" NOT NULL,
    customer_id      text           COLLATE "C" NOT NULL,
    seq              bigint         NOT NULL,
    entry_type       text           COLLATE "C" NOT NULL,
    available_delta  bigint         NOT NULL,
    reserved_delta   bigint         NOT NULL,
    points_delta     bigint         NOT NULL GENERATED ALWAYS AS (available_delta + reserved_delta) STORED,
    available_after  bigint         NOT NULL,
    reserved_after   bigint         NOT NULL,
    reservation_id   text           COLLATE "C",
    reference_type   text           COLLATE "C",
    reference_id     text           COLLATE "C",
    idempotency_key  text           COLLATE "C",
    -- Of the request that the key came with.
    fingerprint      bytea,
    note             text,
    metadata         json,
    -- The console user; null for the API and for ourselves.
    created_by_id    bigint,
    occurred_at      timestamptz(3) NOT NULL,
    created_at       timestamptz(3) NOT NULL,
    CONSTRAINT loyalty_entries_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT loyalty_entries_seq_key UNIQUE (company_id, wallet_id, seq),
    CONSTRAINT loyalty_entries_occurred_key UNIQUE (company_id, customer_id, occurred_at),
    CONSTRAINT loyalty_entries_after_check CHECK (available_after >= 0 AND reserved_after >= 0),
    CONSTRAINT loyalty_entries_delta_check CHECK (CASE
        WHEN entry_type IN ('earn', 'bonus', 'adjust_add', 'redeem_reversal')
            THEN available_delta > 0 AND reserved_delta = 0
        WHEN entry_type IN ('adjust_deduct', 'earn_reversal', 'expire')
            THEN available_delta < 0 AND reserved_delta = 0
        WHEN entry_type = 'redeem_reserve' THEN available_delta < 0 AND reserved_delta = -available_delta
        WHEN entry_type = 'redeem_release' THEN available_delta > 0 AND reserved_delta = -available_delta
        WHEN entry_type = 'redeem_commit' THEN available_delta = 0 AND reserved_delta < 0
        ELSE false END)
);

CREATE UNIQUE INDEX loyalty_entries_idempotency_key ON loyalty_entries (company_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX loyalty_entries_added_idx ON loyalty_entries (company_id, customer_id, occurred_at)
    WHERE points_delta > 0;
CREATE INDEX loyalty_entries_deducted_idx ON loyalty_entries (company_id, customer_id, occurred_at)
    WHERE points_delta < 0;
CREATE INDEX loyalty_entries_reservation_idx ON loyalty_entries (company_id, reservation_id)
    WHERE reservation_id IS NOT NULL;

-- Points that were earned together and expire together.
CREATE TABLE loyalty_lots (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    wallet_id   text           COLLATE "C" NOT NULL,
    -- The order that earned them, if one did.
    order_id    text           COLLATE "C",
    granted     bigint         NOT NULL,
    remaining   bigint         NOT NULL,
    held        bigint         NOT NULL DEFAULT 0,
    earned_at   timestamptz(3) NOT NULL,
    expires_at  timestamptz(3),
    CONSTRAINT loyalty_lots_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT loyalty_lots_points_check CHECK (
        granted > 0 AND remaining >= 0 AND held >= 0 AND remaining + held <= granted)
) WITH (fillfactor = 80);

CREATE INDEX loyalty_lots_wallet_idx ON loyalty_lots (company_id, wallet_id, expires_at, earned_at, id)
    WHERE remaining > 0 OR held > 0;
CREATE INDEX loyalty_lots_due_idx ON loyalty_lots (company_id, expires_at) WHERE remaining > 0;

-- Append-only: which lots an entry took from and gave to.
CREATE TABLE loyalty_lot_moves (
    company_id       bigint NOT NULL,
    entry_id         text   COLLATE "C" NOT NULL,
    lot_id           text   COLLATE "C" NOT NULL,
    wallet_id        text   COLLATE "C" NOT NULL,
    available_delta  bigint NOT NULL,
    reserved_delta   bigint NOT NULL,
    CONSTRAINT loyalty_lot_moves_pkey PRIMARY KEY (company_id, entry_id, lot_id)
);

CREATE INDEX loyalty_lot_moves_wallet_idx ON loyalty_lot_moves (company_id, wallet_id, lot_id);

CREATE TABLE loyalty_reservations (
    company_id      bigint         NOT NULL,
    id              text           COLLATE "C" NOT NULL,
    wallet_id       text           COLLATE "C" NOT NULL,
    customer_id     text           COLLATE "C" NOT NULL,
    points          bigint         NOT NULL,
    status          text           COLLATE "C" NOT NULL DEFAULT 'reserved',
    reference_type  text           COLLATE "C",
    reference_id    text           COLLATE "C",
    redemption_id   text           COLLATE "C",
    expires_at      timestamptz(3) NOT NULL,
    created_at      timestamptz(3) NOT NULL,
    updated_at      timestamptz(3) NOT NULL,
    CONSTRAINT loyalty_reservations_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT loyalty_reservations_points_check CHECK (points > 0),
    CONSTRAINT loyalty_reservations_status_check CHECK (status IN ('reserved', 'committed', 'released', 'expired'))
) WITH (fillfactor = 80);

CREATE INDEX loyalty_reservations_wallet_idx ON loyalty_reservations (company_id, wallet_id, expires_at, id)
    WHERE status = 'reserved';
CREATE INDEX loyalty_reservations_due_idx ON loyalty_reservations (company_id, expires_at) WHERE status = 'reserved';

-- Append-only: which lots a reservation holds points of.
CREATE TABLE loyalty_holds (
    company_id      bigint NOT NULL,
    reservation_id  text   COLLATE "C" NOT NULL,
    lot_id          text   COLLATE "C" NOT NULL,
    points          bigint NOT NULL,
    CONSTRAINT loyalty_holds_pkey PRIMARY KEY (company_id, reservation_id, lot_id),
    CONSTRAINT loyalty_holds_points_check CHECK (points > 0)
);

-- What an order is worth by the terms under which it first earned, what it should have earned now, what is posted for
-- it, and what could not be taken back.
CREATE TABLE loyalty_order_positions (
    company_id  bigint  NOT NULL,
    order_id    text    COLLATE "C" NOT NULL,
    wallet_id   text    COLLATE "C" NOT NULL,
    earn_on     text    COLLATE "C" NOT NULL,
    worth       bigint  NOT NULL,
    target      bigint  NOT NULL,
    posted      bigint  NOT NULL,
    shortfall   bigint  NOT NULL,
    postings    integer NOT NULL,
    -- Null in both: an order that earned before; it keeps its worth, in proportion to what is left of its total.
    tiers_version integer,
    rounding      text    COLLATE "C",
    CONSTRAINT loyalty_order_positions_pkey PRIMARY KEY (company_id, order_id),
    CONSTRAINT loyalty_order_positions_check CHECK (
        worth > 0 AND target >= 0 AND shortfall >= 0 AND posted = target + shortfall),
    CONSTRAINT loyalty_order_positions_terms_check CHECK ((tiers_version IS NULL) = (rounding IS NULL))
) WITH (fillfactor = 80);

CREATE INDEX loyalty_order_positions_wallet_idx ON loyalty_order_positions (company_id, wallet_id);

-- How far the worker's round of checking has come, and what the last whole round found.
CREATE TABLE loyalty_checks (
    company_id  bigint         NOT NULL,
    position    text           COLLATE "C" NOT NULL,
    found       bigint         NOT NULL,
    drifting    bigint         NOT NULL,
    checked_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT loyalty_checks_pkey PRIMARY KEY (company_id)
);


-- Rewards, and what became of them. A redemption keeps what its reward was, so rewards come and go freely.

CREATE TABLE loyalty_reward_options (
    company_id               bigint         NOT NULL,
    id                       text           COLLATE "C" NOT NULL,
    reward_name              text           NOT NULL,
    cost_to_redeem           bigint         NOT NULL,
    discount_type            text           COLLATE "C" NOT NULL,
    -- Null for free shipping.
    discount_value           numeric,
    expiration_preset        text           COLLATE "C" NOT NULL,
    voucher_prefix           text           COLLATE "C",
    minimum_purchase_amount  numeric,
    search_text              text           NOT NULL,
    created_at               timestamptz(3) NOT NULL DEFAULT now(),
    updated_at               timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT loyalty_reward_options_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT loyalty_reward_options_cost_check CHECK (cost_to_redeem > 0),
    CONSTRAINT loyalty_reward_options_discount_check CHECK (CASE
        WHEN discount_type = 'free_shipping' THEN discount_value IS NULL
        WHEN discount_type = 'percentage' THEN discount_value IS NOT NULL AND discount_value BETWEEN 0 AND 100
        WHEN discount_type = 'fixed_amount' THEN discount_value IS NOT NULL AND discount_value > 0
        ELSE false END)
);

CREATE INDEX loyalty_reward_options_created_idx ON loyalty_reward_options (company_id, created_at, id);

-- A reservation of the ledger holds its points; their statuses are always the same. The instant of its entry in the
-- ledger is the one of its making, so that it can be a cursor.
CREATE TABLE loyalty_redemptions (
    company_id               bigint         NOT NULL,
    id                       text           COLLATE "C" NOT NULL,
    wallet_id                text           COLLATE "C" NOT NULL,
    customer_id              text           COLLATE "C" NOT NULL,
    reward_option_id         text           COLLATE "C" NOT NULL,
    reward_name              text           NOT NULL,
    points_cost              bigint         NOT NULL,
    status                   text           COLLATE "C" NOT NULL DEFAULT 'reserved',
    voucher_code             text           COLLATE "C" NOT NULL,
    discount_type            text           COLLATE "C" NOT NULL,
    discount_value           numeric,
    minimum_purchase_amount  numeric,
    expiration_preset        text           COLLATE "C" NOT NULL,
    metadata                 json,
    search_text              text           NOT NULL,
    reserved_until           timestamptz(3) NOT NULL,
    committed_at             timestamptz(3),
    -- Of the voucher; null before the commit, and where it is valid for ever.
    expires_at               timestamptz(3),
    created_at               timestamptz(3) NOT NULL,
    updated_at               timestamptz(3) NOT NULL,
    CONSTRAINT loyalty_redemptions_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT loyalty_redemptions_created_key UNIQUE (company_id, wallet_id, created_at),
    CONSTRAINT loyalty_redemptions_cost_check CHECK (points_cost > 0),
    CONSTRAINT loyalty_redemptions_status_check CHECK (
        status IN ('reserved', 'committed', 'released', 'expired', 'failed')
        AND (status = 'committed') = (committed_at IS NOT NULL))
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX loyalty_redemptions_voucher_key ON loyalty_redemptions (company_id, upper(voucher_code))
    WHERE status IN ('reserved', 'committed');
CREATE INDEX loyalty_redemptions_option_idx ON loyalty_redemptions (company_id, reward_option_id, customer_id)
    WHERE status IN ('reserved', 'committed');
CREATE UNIQUE INDEX loyalty_reservations_redemption_key ON loyalty_reservations (company_id, redemption_id)
    WHERE redemption_id IS NOT NULL;


-- The test environment: what the simulators of channels and carriers will call back with, and when.

CREATE TABLE sandbox_callbacks (
    company_id  bigint      NOT NULL,
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    -- In the company's time, so that a clock moved forward brings them on.
    due_at      timestamptz NOT NULL,
    path        text        NOT NULL,
    headers     json        NOT NULL,
    body        bytea       NOT NULL,
    tries       integer     NOT NULL DEFAULT 0,
    CONSTRAINT sandbox_callbacks_pkey PRIMARY KEY (company_id, id)
);

CREATE INDEX sandbox_callbacks_due_idx ON sandbox_callbacks (company_id, due_at, id);
CREATE INDEX sandbox_callbacks_due_at_idx ON sandbox_callbacks (due_at, id);


-- Carriers: each company's accounts with them, what was asked of them, and what their simulators remember.

CREATE TABLE carrier_connections (
    company_id     bigint         NOT NULL,
    id             text           COLLATE "C" NOT NULL,
    provider       text           COLLATE "C" NOT NULL,
    adapter        text           COLLATE "C" NOT NULL,
    sealed         bytea          NOT NULL,
    -- The parts of the credentials that are no secret, for people to recognise the account by.
    public_fields  json           NOT NULL,
    status         text           COLLATE "C" NOT NULL DEFAULT 'connected',
    verified_at    timestamptz(3),
    last_error     text,
    hook_hash      bytea          NOT NULL,
    created_at     timestamptz(3) NOT NULL DEFAULT now(),
    -- Of the addresses that the same carrier was told before: it may go on calling there.
    earlier_hooks  bytea[]        NOT NULL DEFAULT '{}',
    CONSTRAINT carrier_connections_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT carrier_connections_provider_key UNIQUE (company_id, provider),
    CONSTRAINT carrier_connections_status_check CHECK (status IN ('connected', 'invalid'))
);

CREATE INDEX carrier_connections_hook_idx ON carrier_connections (hook_hash);
CREATE INDEX carrier_connections_earlier_idx ON carrier_connections USING gin (earlier_hooks);

-- Written before a booking's outcome is, so that an answer of a carrier is never lost with a transaction. Never changed,
-- and forgotten after a while.
CREATE TABLE carrier_calls (
    company_id     bigint         NOT NULL,
    id             bigint         GENERATED ALWAYS AS IDENTITY,
    connection_id  text           COLLATE "C" NOT NULL,
    adapter        text           COLLATE "C" NOT NULL,
    operation      text           COLLATE "C" NOT NULL,
    reference      text           COLLATE "C" NOT NULL,
    outcome        text           COLLATE "C" NOT NULL,
    details        json           NOT NULL,
    created_at     timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT carrier_calls_pkey PRIMARY KEY (company_id, id)
);

CREATE INDEX carrier_calls_reference_idx ON carrier_calls (company_id, reference, id);
CREATE INDEX carrier_calls_created_idx ON carrier_calls (company_id, created_at);

-- What the simulators of carriers took on. A booking's state is its last step that has come by the company's clock.
CREATE TABLE sandbox_bookings (
    company_id  bigint      NOT NULL,
    adapter     text        COLLATE "C" NOT NULL,
    reference   text        COLLATE "C" NOT NULL,
    order_no    text        COLLATE "C" NOT NULL,
    awb         text        COLLATE "C" NOT NULL,
    scenario    text        COLLATE "C",
    asked       json        NOT NULL,
    steps       json        NOT NULL,
    booked_at   timestamptz NOT NULL,
    -- How often it was asked for: more than once is what must never happen.
    requests    integer     NOT NULL DEFAULT 1,
    CONSTRAINT sandbox_bookings_pkey PRIMARY KEY (company_id, adapter, reference),
    CONSTRAINT sandbox_bookings_order_no_key UNIQUE (company_id, adapter, order_no),
    CONSTRAINT sandbox_bookings_awb_key UNIQUE (company_id, adapter, awb)
);

CREATE INDEX sandbox_bookings_booked_idx ON sandbox_bookings (company_id, booked_at);


-- Places and quotes.

-- Places: a dictionary for the whole installation, read from a file that the operator brings. It belongs to nobody.
CREATE TABLE areas (
    -- The ministry's code without its dots; it begins with its parent's.
    code        bigint      NOT NULL,
    -- 1 province, 2 city or regency, 3 district, 4 sub-district; a province's parent is 0.
    level       smallint    NOT NULL,
    parent      bigint      NOT NULL,
    name        text        NOT NULL,
    -- Since when a newer file no longer has it.
    retired_at  timestamptz,
    -- The postal code, if the file has it.
    zip         text        COLLATE "C",
    CONSTRAINT areas_pkey PRIMARY KEY (code),
    CONSTRAINT areas_level_check CHECK (level BETWEEN 1 AND 4 AND (level = 1) = (parent = 0))
);

CREATE INDEX areas_parent_idx ON areas (parent, name, code) WHERE retired_at IS NULL;

-- A file on its way in, empty otherwise.
CREATE UNLOGGED TABLE area_arrivals (
    code        bigint      NOT NULL,
    level       smallint    NOT NULL,
    parent      bigint      NOT NULL,
    name        text        NOT NULL,
    zip         text        COLLATE "C",
    CONSTRAINT area_arrivals_pkey PRIMARY KEY (code)
);

-- The words of each sub-district: of its own name and postal code (A), its district's (B), its city's (C) and its
-- province's (D).
CREATE TABLE area_words (
    code   bigint   NOT NULL,
    words  tsvector NOT NULL,
    CONSTRAINT area_words_pkey PRIMARY KEY (code)
);

-- Without a list of pending entries, which every search would read.
CREATE INDEX area_words_idx ON area_words USING gin (words) WITH (fastupdate = off);

-- Each of those words as it is, and with any one letter left out.
CREATE TABLE area_spellings (
    spelling  text COLLATE "C" NOT NULL,
    word      text COLLATE "C" NOT NULL,
    CONSTRAINT area_spellings_pkey PRIMARY KEY (spelling, word)
);

-- Append-only: which files were read.
CREATE TABLE area_datasets (
    id           bigint         GENERATED ALWAYS AS IDENTITY,
    name         text           NOT NULL,
    sha512       text           COLLATE "C" NOT NULL,
    areas        integer        NOT NULL,
    imported_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT area_datasets_pkey PRIMARY KEY (id)
);

-- What carriers said of the places they serve; an empty parent stands for the whole country.
CREATE TABLE coverage_cache (
    company_id  bigint      NOT NULL,
    adapter     text        COLLATE "C" NOT NULL,
    level       text        COLLATE "C" NOT NULL,
    parent      text        COLLATE "C" NOT NULL,
    areas       json        NOT NULL,
    fetched_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT coverage_cache_pkey PRIMARY KEY (company_id, adapter, level, parent)
);

-- What carriers asked for a journey, for some minutes. Unlogged: a crash of PostgreSQL only makes us ask again.
CREATE UNLOGGED TABLE quote_cache (
    company_id  bigint      NOT NULL,
    journey     bytea       NOT NULL,
    quote       json        NOT NULL,
    expires_at  timestamptz NOT NULL,
    CONSTRAINT quote_cache_pkey PRIMARY KEY (company_id, journey)
);

CREATE INDEX quote_cache_expires_idx ON quote_cache (expires_at);


-- Channels: each company's accounts with them, and the pace at which they are sent to.

CREATE TABLE channel_connections (
    company_id       bigint         NOT NULL,
    id               text           COLLATE "C" NOT NULL,
    source           text           COLLATE "C" NOT NULL,
    -- The account as the channel names it: connecting the same one again goes on where it left off.
    account_id       text           COLLATE "C" NOT NULL,
    -- What is no secret, for people to recognise the account by.
    account          json           NOT NULL,
    -- Sealed with the installation's key; gone once the channel is disconnected.
    credentials      bytea,
    hook_hash        bytea,
    status           text           COLLATE "C" NOT NULL DEFAULT 'connected',
    verified_at      timestamptz(3),
    last_error       text,
    last_error_at    timestamptz(3),
    -- When a token that ends by itself is to be exchanged for the next one.
    renew_at         timestamptz(3),
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    connected_at     timestamptz(3) NOT NULL DEFAULT now(),
    disconnected_at  timestamptz(3),
    -- When the account's templates are to be read next, if the channel reviews templates.
    templates_due_at timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT channel_connections_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT channel_connections_account_key UNIQUE (company_id, source, account_id),
    CONSTRAINT channel_connections_status_check CHECK (status IN ('connected', 'disconnected')),
    CONSTRAINT channel_connections_secrets_check
        CHECK ((status = 'connected') = (credentials IS NOT NULL AND hook_hash IS NOT NULL))
);

-- One connection of a kind at a time.
CREATE UNIQUE INDEX channel_connections_source_key ON channel_connections (company_id, source)
    WHERE status = 'connected';

-- What a channel thinks of an account. Each value has the instant of the report that it is from.
CREATE TABLE channel_statuses (
    company_id          bigint         NOT NULL,
    connection_id       text           COLLATE "C" NOT NULL,
    source              text           COLLATE "C" NOT NULL,
    -- The company's number or id on the channel.
    connected_number    text           NOT NULL,
    quality             text           COLLATE "C",
    quality_at          timestamptz(3),
    -- People a day; 0 for no limit.
    messaging_limit     integer,
    messaging_limit_at  timestamptz(3),
    throughput          text           COLLATE "C",
    throughput_at       timestamptz(3),
    updated_at          timestamptz(3) NOT NULL DEFAULT now(),
    checked_at          timestamptz(3),
    -- When the channel is asked next.
    check_at            timestamptz(3),
    CONSTRAINT channel_statuses_pkey PRIMARY KEY (company_id, connection_id),
    CONSTRAINT channel_statuses_quality_check CHECK (quality IN ('GREEN', 'YELLOW', 'RED')),
    CONSTRAINT channel_statuses_limit_check CHECK (messaging_limit >= 0)
);

CREATE INDEX channel_statuses_check_idx ON channel_statuses (check_at) WHERE check_at IS NOT NULL;

-- The latest of each kind.
CREATE TABLE channel_warnings (
    company_id     bigint         NOT NULL,
    connection_id  text           COLLATE "C" NOT NULL,
    code           text           COLLATE "C" NOT NULL,
    severity       text           COLLATE "C" NOT NULL,
    message        text           NOT NULL,
    reported_at    timestamptz(3) NOT NULL,
    expires_at     timestamptz(3),
    -- A later report said that it is over.
    is_over        boolean        NOT NULL DEFAULT false,
    CONSTRAINT channel_warnings_pkey PRIMARY KEY (company_id, connection_id, code),
    CONSTRAINT channel_warnings_severity_check CHECK (severity IN ('info', 'warning', 'critical'))
);

CREATE INDEX channel_connections_renew_idx ON channel_connections (renew_at) WHERE status = 'connected';
CREATE INDEX channel_connections_templates_idx
    ON channel_connections (source, templates_due_at) WHERE status = 'connected';

-- When each connection may send again. Unlogged: after a crash of PostgreSQL the first sends do not wait.
CREATE UNLOGGED TABLE channel_paces (
    company_id     bigint      NOT NULL,
    connection_id  text        COLLATE "C" NOT NULL,
    free_at        timestamptz NOT NULL,
    CONSTRAINT channel_paces_pkey PRIMARY KEY (company_id, connection_id)
) WITH (fillfactor = 50);


-- The console: people, what they may do in which company, their sessions, and a log of what they changed.

CREATE TABLE users (
    id             bigint         GENERATED ALWAYS AS IDENTITY,
    email          text           NOT NULL,
    -- Case-folded by us, as customers' addresses are.
    email_key      text           COLLATE "C" NOT NULL,
    name           text           NOT NULL,
    -- Argon2id in its usual notation; null until one is chosen by a one-time link.
    password_hash  text,
    language       text           COLLATE "C" NOT NULL DEFAULT 'en',
    created_at     timestamptz(3) NOT NULL DEFAULT now(),
    -- In which they read and enter times; null: the company's.
    time_zone      text           COLLATE "C",
    currency       text           COLLATE "C",
    CONSTRAINT users_pkey PRIMARY KEY (id),
    CONSTRAINT users_email_key UNIQUE (email_key),
    CONSTRAINT users_language_check CHECK (language IN ('en', 'id'))
);

CREATE TABLE memberships (
    organisation_id  bigint         NOT NULL,
    user_id          bigint         NOT NULL,
    role             text           COLLATE "C" NOT NULL,
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    -- Null until they come by a link: whom a company invites, it does not know yet.
    joined_at        timestamptz(3),
    -- What a person wants to hear of in this company; null: the defaults.
    alerts           json,
    -- When they were last mailed about what waits.
    alerted_at       timestamptz(3),
    -- When they last did something at the console, in any session.
    seen_at          timestamptz(3),
    CONSTRAINT memberships_pkey PRIMARY KEY (organisation_id, user_id),
    CONSTRAINT memberships_organisation_fkey FOREIGN KEY (organisation_id) REFERENCES organisations (id),
    CONSTRAINT memberships_user_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT memberships_role_check CHECK (role IN ('owner', 'developer', 'agent'))
);

CREATE INDEX memberships_user_idx ON memberships (user_id);

CREATE TABLE sessions (
    hash             bytea          NOT NULL,
    user_id          bigint         NOT NULL,
    organisation_id  bigint         NOT NULL,
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    expires_at       timestamptz(3) NOT NULL,
    address          text           NOT NULL,
    browser          text           NOT NULL,
    -- To the minute.
    seen_at          timestamptz(3),
    CONSTRAINT sessions_pkey PRIMARY KEY (hash),
    CONSTRAINT sessions_membership_fkey FOREIGN KEY (organisation_id, user_id)
        REFERENCES memberships (organisation_id, user_id) ON DELETE CASCADE
);

CREATE INDEX sessions_user_idx ON sessions (user_id);
CREATE INDEX sessions_expires_idx ON sessions (expires_at);

-- A person's own filters of the console's lists.
CREATE TABLE saved_filters (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    user_id     bigint         NOT NULL,
    list        text           COLLATE "C" NOT NULL,
    name        text           NOT NULL,
    query       text           NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT saved_filters_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT saved_filters_name_key UNIQUE (company_id, user_id, list, name)
);

-- From these browsers a person signs in even while strangers guess the password.
CREATE TABLE known_browsers (
    hash     bytea          NOT NULL,
    user_id  bigint         NOT NULL,
    used_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT known_browsers_pkey PRIMARY KEY (hash, user_id),
    CONSTRAINT known_browsers_user_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE INDEX known_browsers_user_idx ON known_browsers (user_id, used_at);
CREATE INDEX known_browsers_used_idx ON known_browsers (used_at);

-- Set-up, invitations and forgotten passwords: whoever has the link may choose a password, once.
CREATE TABLE one_time_links (
    hash             bytea          NOT NULL,
    purpose          text           COLLATE "C" NOT NULL,
    organisation_id  bigint         NOT NULL,
    -- Null for the set-up of an organisation: its first owner says who they are.
    user_id          bigint,
    expires_at       timestamptz(3) NOT NULL,
    CONSTRAINT one_time_links_pkey PRIMARY KEY (hash),
    CONSTRAINT one_time_links_organisation_fkey FOREIGN KEY (organisation_id) REFERENCES organisations (id),
    CONSTRAINT one_time_links_user_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT one_time_links_purpose_check CHECK (purpose IN ('setup', 'invitation', 'reset'))
);

-- Failed attempts to sign in, by address and by account. Unlogged: a crash forgives them.
CREATE UNLOGGED TABLE sign_in_attempts (
    subject       text        COLLATE "C" NOT NULL,
    failures      integer     NOT NULL,
    window_start  timestamptz NOT NULL,
    CONSTRAINT sign_in_attempts_pkey PRIMARY KEY (subject)
);

-- Append-only. The user's name and address as they were, since people leave.
CREATE TABLE audit_entries (
    id               bigint         GENERATED ALWAYS AS IDENTITY,
    organisation_id  bigint         NOT NULL,
    environment      text           COLLATE "C",
    user_id          bigint,
    user_name        text           NOT NULL,
    action           text           COLLATE "C" NOT NULL,
    subject          text           NOT NULL,
    address          text           NOT NULL,
    created_at       timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
    -- Of a change by program; user_name is the key's name then.
    key_id           text           COLLATE "C",
    CONSTRAINT audit_entries_pkey PRIMARY KEY (id),
    CONSTRAINT audit_entries_organisation_fkey FOREIGN KEY (organisation_id) REFERENCES organisations (id)
);

CREATE INDEX audit_entries_organisation_idx ON audit_entries (organisation_id, id);


-- The web chat: its visitors, their sessions and what was said.

CREATE TABLE widget_visitors (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    -- The site's own id of somebody signed in; proven by the site's server, so it is the same person on every device.
    external_id  text           COLLATE "C",
    name         text,
    -- Only where the site's server vouched for it.
    email        text,
    last_number  bigint         NOT NULL DEFAULT 0,
    created_at   timestamptz(3) NOT NULL DEFAULT now(),
    seen_at      timestamptz(3) NOT NULL DEFAULT now(),
    -- When they last typed something that they have not sent, in real time.
    typing_at    timestamptz(3),
    -- What they answered to the form before the chat. Nobody has verified it.
    stated_name     text,
    stated_contact  text,
    CONSTRAINT widget_visitors_pkey PRIMARY KEY (company_id, id)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX widget_visitors_external_key ON widget_visitors (company_id, external_id)
    WHERE external_id IS NOT NULL;
CREATE INDEX widget_visitors_silent_idx ON widget_visitors (seen_at) WHERE last_number = 0;

-- What a page keeps to be recognised by; here only its hash.
CREATE TABLE widget_sessions (
    company_id  bigint         NOT NULL,
    hash        bytea          NOT NULL,
    visitor_id  text           COLLATE "C" NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    used_at     timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT widget_sessions_pkey PRIMARY KEY (company_id, hash),
    CONSTRAINT widget_sessions_visitor_fkey FOREIGN KEY (company_id, visitor_id)
        REFERENCES widget_visitors (company_id, id) ON DELETE CASCADE
);

CREATE INDEX widget_sessions_visitor_idx ON widget_sessions (company_id, visitor_id);
CREATE INDEX widget_sessions_used_idx ON widget_sessions (used_at);

-- A conversation as the page shows it. Numbers are handed out under the visitor's lock, without gaps and in the order
-- of their commits, so that a page that has number 7 asks for what comes after 7 and misses nothing.
CREATE TABLE widget_lines (
    company_id    bigint         NOT NULL,
    visitor_id    text           COLLATE "C" NOT NULL,
    number        bigint         NOT NULL,
    -- Of a message out: messageId2. Of one in: what the page called it.
    reference     text           COLLATE "C" NOT NULL,
    direction     text           COLLATE "C" NOT NULL,
    content       json           NOT NULL,
    at            timestamptz(3) NOT NULL,
    delivered_at  timestamptz(3),
    read_at       timestamptz(3),
    CONSTRAINT widget_lines_pkey PRIMARY KEY (company_id, visitor_id, number),
    CONSTRAINT widget_lines_reference_key UNIQUE (company_id, visitor_id, reference),
    CONSTRAINT widget_lines_visitor_fkey FOREIGN KEY (company_id, visitor_id)
        REFERENCES widget_visitors (company_id, id) ON DELETE CASCADE,
    CONSTRAINT widget_lines_direction_check CHECK (direction IN ('in', 'out'))
) WITH (fillfactor = 80);

-- How much a visitor or an address did in the running minute. Unlogged: a crash of PostgreSQL forgets it.
CREATE UNLOGGED TABLE widget_windows (
    company_id    bigint      NOT NULL,
    subject       text        COLLATE "C" NOT NULL,
    window_start  timestamptz NOT NULL,
    used          integer     NOT NULL,
    CONSTRAINT widget_windows_pkey PRIMARY KEY (company_id, subject)
) WITH (fillfactor = 50);

CREATE INDEX widget_windows_start_idx ON widget_windows (window_start);


-- Inbound: who writes to a company over its channels, what the channels called back with, the files that came along,
-- and what the simulators of channels were asked.

CREATE TABLE contacts (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    -- Null as long as neither a phone number nor an e-mail address is known.
    customer_id  text           COLLATE "C",
    name         text,
    created_at   timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT contacts_pkey PRIMARY KEY (company_id, id)
);

CREATE INDEX contacts_customer_idx ON contacts (company_id, customer_id);

-- Whom the channels know a contact as. All spellings of one number have the same key.
CREATE TABLE contact_identities (
    company_id  bigint NOT NULL,
    kind        text   COLLATE "C" NOT NULL,
    key         text   COLLATE "C" NOT NULL,
    contact_id  text   COLLATE "C" NOT NULL,
    -- As they were met, the first one first.
    spellings   text[] NOT NULL,
    CONSTRAINT contact_identities_pkey PRIMARY KEY (company_id, kind, key)
);

CREATE INDEX contact_identities_contact_idx ON contact_identities (company_id, contact_id);

-- A contact's conversation over one connection. Instants are the company's.
CREATE TABLE message_threads (
    company_id       bigint         NOT NULL,
    connection_id    text           COLLATE "C" NOT NULL,
    contact_id       text           COLLATE "C" NOT NULL,
    last_inbound_at  timestamptz(3),
    -- How many messages went out since the contact last wrote.
    sent_since       integer        NOT NULL DEFAULT 0,
    last_message_id  text           COLLATE "C",
    -- What the contact wrote last: an answer belongs to it.
    last_inbound_id  text           COLLATE "C",
    CONSTRAINT message_threads_pkey PRIMARY KEY (company_id, connection_id, contact_id)
) WITH (fillfactor = 80);

-- What channels called back with, as it came. Those of one connection are dealt with in their order, by the worker that
-- holds the lease of its lane.
CREATE TABLE channel_lanes (
    company_id     bigint NOT NULL,
    connection_id  text   COLLATE "C" NOT NULL,
    source         text   COLLATE "C" NOT NULL,
    holder         text   COLLATE "C",
    leased_until   timestamptz,
    -- What the holder has begun and not finished. If it dies, each of them had a try.
    claimed        bigint[] NOT NULL DEFAULT '{}',
    CONSTRAINT channel_lanes_pkey PRIMARY KEY (company_id, connection_id)
);

CREATE TABLE channel_callbacks (
    company_id     bigint         NOT NULL,
    id             bigint         GENERATED ALWAYS AS IDENTITY,
    connection_id  text           COLLATE "C" NOT NULL,
    hash           bytea          NOT NULL,
    headers        json           NOT NULL,
    body           bytea          NOT NULL,
    status         text           COLLATE "C" NOT NULL DEFAULT 'waiting',
    -- How many of its items are dealt with.
    position       integer        NOT NULL DEFAULT 0,
    error          text,
    tries          integer        NOT NULL DEFAULT 0,
    due_at         timestamptz    NOT NULL DEFAULT now(),
    received_at    timestamptz(3) NOT NULL DEFAULT now(),
    -- How often it waited for a message that it refers to. `tries` counts what was started.
    postponements  integer        NOT NULL DEFAULT 0,
    CONSTRAINT channel_callbacks_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT channel_callbacks_hash_key UNIQUE (company_id, connection_id, hash),
    CONSTRAINT channel_callbacks_status_check CHECK (status IN ('waiting', 'done', 'failed'))
);

CREATE INDEX channel_callbacks_waiting_idx ON channel_callbacks (company_id, connection_id, id)
    WHERE status = 'waiting';
CREATE INDEX channel_callbacks_failed_idx ON channel_callbacks (company_id, connection_id, id)
    WHERE status = 'failed';
CREATE INDEX channel_callbacks_received_idx ON channel_callbacks (company_id, received_at);

-- What channels report besides messages and their status.
CREATE TABLE channel_events (
    company_id     bigint         NOT NULL,
    id             text           COLLATE "C" NOT NULL,
    connection_id  text           COLLATE "C" NOT NULL,
    source         text           COLLATE "C" NOT NULL,
    kind           text           COLLATE "C" NOT NULL,
    -- The channel's word for it.
    name           text           NOT NULL,
    -- The same for each repetition of a report.
    key            text           COLLATE "C" NOT NULL,
    -- Of an edit, a deletion or a reaction: the channel's id of its message, which has not arrived.
    message_id     text           COLLATE "C",
    contact_id     text           COLLATE "C",
    customer_id    text           COLLATE "C",
    client_number  text,
    data           json           NOT NULL,
    -- By company time.
    occurred_at    timestamptz(3) NOT NULL,
    created_at     timestamptz(3) NOT NULL DEFAULT now(),
    -- The counter's cell and the list's.
    cell           text           COLLATE "C" NOT NULL GENERATED ALWAYS AS (source || '/' || kind) STORED,
    CONSTRAINT channel_events_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT channel_events_key_key UNIQUE (company_id, connection_id, key),
    CONSTRAINT channel_events_kind_check CHECK (
        kind IN ('preference', 'referral', 'system', 'error', 'edit', 'revoke', 'reaction', 'unknown'))
);

CREATE INDEX channel_events_created_idx ON channel_events (company_id, created_at, id);
CREATE INDEX channel_events_cell_idx ON channel_events (company_id, cell, created_at, id);
CREATE INDEX channel_events_connection_idx ON channel_events (company_id, connection_id, id);
CREATE INDEX channel_events_contact_idx ON channel_events (company_id, contact_id) WHERE contact_id IS NOT NULL;
CREATE INDEX channel_events_message_idx ON channel_events (company_id, source, message_id) WHERE message_id IS NOT NULL;

-- Messages that their channel refused for the moment, and when they are sent again. The row goes with the outcome.
CREATE TABLE deferred_messages (
    company_id     bigint         NOT NULL,
    message_id     text           COLLATE "C" NOT NULL,
    connection_id  text           COLLATE "C" NOT NULL,
    outgoing       bytea          NOT NULL,
    tries          integer        NOT NULL DEFAULT 1,
    -- The company's time.
    deferred_at    timestamptz(3) NOT NULL,
    due_at         timestamptz(3) NOT NULL,
    -- While a worker sends it. If the worker dies meanwhile, the outcome is unknown.
    claimed_at     timestamptz,
    -- Sealed if it has a one-time code.
    is_sealed      boolean        NOT NULL DEFAULT false,
    CONSTRAINT deferred_messages_pkey PRIMARY KEY (company_id, message_id)
);

CREATE INDEX deferred_messages_due_idx ON deferred_messages (due_at);

-- Files that came with messages: first where they can be had, then their bytes in parts.
CREATE TABLE message_media (
    company_id     bigint         NOT NULL,
    message_id     text           COLLATE "C" NOT NULL,
    number         integer        NOT NULL,
    connection_id  text           COLLATE "C" NOT NULL,
    source         text           COLLATE "C" NOT NULL,
    type           text           COLLATE "C" NOT NULL,
    mime_type      text,
    media_id       text,
    url            text,
    filename       text,
    status         text           COLLATE "C" NOT NULL DEFAULT 'waiting',
    size           bigint,
    error          text,
    tries          integer        NOT NULL DEFAULT 0,
    due_at         timestamptz    NOT NULL DEFAULT now(),
    created_at     timestamptz(3) NOT NULL DEFAULT now(),
    -- Null for files that were received before: their content is in message_media_parts.
    file_id        text           COLLATE "C",
    CONSTRAINT message_media_pkey PRIMARY KEY (company_id, message_id, number),
    CONSTRAINT message_media_status_check CHECK (status IN ('waiting', 'stored', 'failed'))
);

CREATE INDEX message_media_waiting_idx ON message_media (due_at) WHERE status = 'waiting';
CREATE INDEX message_media_file_idx ON message_media (company_id, file_id) WHERE file_id IS NOT NULL;

CREATE TABLE message_media_parts (
    company_id  bigint  NOT NULL,
    message_id  text    COLLATE "C" NOT NULL,
    number      integer NOT NULL,
    part        integer NOT NULL,
    data        bytea   NOT NULL,
    CONSTRAINT message_media_parts_pkey PRIMARY KEY (company_id, message_id, number, part)
);

-- What callers, agents and visitors upload and what customers send, each stored in parts here or in a bucket.
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

-- Pictures of products that were uploaded. The token is the end of their public address; a picture that no product names
-- is an unused file.
CREATE TABLE product_pictures (
    company_id  bigint NOT NULL,
    token       text   COLLATE "C" NOT NULL,
    file_id     text   COLLATE "C" NOT NULL,
    products    text[] NOT NULL DEFAULT '{}',
    CONSTRAINT product_pictures_pkey PRIMARY KEY (company_id, token)
);

CREATE UNIQUE INDEX product_pictures_file_key ON product_pictures (company_id, file_id);

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

-- What the simulators of channels were asked, and how often of what they count.
CREATE TABLE sandbox_outbox (
    company_id  bigint         NOT NULL,
    id          bigint         GENERATED ALWAYS AS IDENTITY,
    source      text           COLLATE "C" NOT NULL,
    method      text           COLLATE "C" NOT NULL,
    path        text           NOT NULL,
    headers     json           NOT NULL,
    body        text           NOT NULL,
    status      integer        NOT NULL,
    answer      text           NOT NULL,
    asked_at    timestamptz(3) NOT NULL,
    CONSTRAINT sandbox_outbox_pkey PRIMARY KEY (company_id, id)
);

CREATE TABLE sandbox_counts (
    company_id  bigint  NOT NULL,
    name        text    COLLATE "C" NOT NULL,
    count       integer NOT NULL,
    CONSTRAINT sandbox_counts_pkey PRIMARY KEY (company_id, name)
);

-- Files that were uploaded to simulators of channels.
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

CREATE TABLE sandbox_templates (
    company_id  bigint NOT NULL,
    -- The business account that has it.
    source      text   COLLATE "C" NOT NULL,
    name        text   COLLATE "C" NOT NULL,
    language    text   COLLATE "C" NOT NULL,
    content     json   NOT NULL,
    status      text   COLLATE "C" NOT NULL DEFAULT 'APPROVED',
    reason      text,
    CONSTRAINT sandbox_templates_pkey PRIMARY KEY (company_id, source, name, language)
);

-- What the simulators of channels report about their accounts.
CREATE TABLE sandbox_channel_states (
    company_id       bigint  NOT NULL,
    source           text    COLLATE "C" NOT NULL,
    quality          text    COLLATE "C" NOT NULL,
    messaging_limit  integer NOT NULL,
    throughput       text    COLLATE "C" NOT NULL,
    CONSTRAINT sandbox_channel_states_pkey PRIMARY KEY (company_id, source)
);


-- Simulators that are called from outside: subscribed addresses, callbacks that wait to be posted there, when simulated
-- people last wrote, and the pace at which they are written to.

CREATE TABLE sandbox_subscriptions (
    company_id  bigint         NOT NULL,
    -- Where the account's callbacks go within the installation.
    path        text           COLLATE "C" NOT NULL,
    -- 1: of the app; 2: of the business account, instead; 3: of the number, instead of both.
    level       smallint       NOT NULL,
    url         text           NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT sandbox_subscriptions_pkey PRIMARY KEY (company_id, path, level),
    CONSTRAINT sandbox_subscriptions_level_check CHECK (level BETWEEN 1 AND 3)
);

CREATE TABLE sandbox_deliveries (
    company_id  bigint      NOT NULL,
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    -- In the company's time, like sandbox_callbacks.
    due_at      timestamptz NOT NULL,
    url         text        NOT NULL,
    headers     json        NOT NULL,
    body        bytea       NOT NULL,
    tries       integer     NOT NULL DEFAULT 0,
    CONSTRAINT sandbox_deliveries_pkey PRIMARY KEY (company_id, id)
);

CREATE INDEX sandbox_deliveries_due_idx ON sandbox_deliveries (company_id, due_at, id);

CREATE TABLE sandbox_people (
    company_id  bigint         NOT NULL,
    source      text           COLLATE "C" NOT NULL,
    person      text           COLLATE "C" NOT NULL,
    -- In the company's time.
    wrote_at    timestamptz(3) NOT NULL,
    CONSTRAINT sandbox_people_pkey PRIMARY KEY (company_id, source, person)
);

CREATE INDEX sandbox_people_wrote_idx ON sandbox_people (wrote_at);

CREATE UNLOGGED TABLE sandbox_paces (
    company_id  bigint      NOT NULL,
    name        text        COLLATE "C" NOT NULL,
    -- In the company's time.
    free_at     timestamptz NOT NULL,
    CONSTRAINT sandbox_paces_pkey PRIMARY KEY (company_id, name)
) WITH (fillfactor = 50);

CREATE INDEX sandbox_paces_free_idx ON sandbox_paces (free_at);


-- Shipping: shipments, their bookings and history, what carriers call back with, and store locations.

CREATE TABLE store_locations (
    company_id    bigint         NOT NULL,
    id            text           COLLATE "C" NOT NULL,
    name          text           NOT NULL,
    contact_name  text,
    phone         text,
    email         text,
    address       text           NOT NULL,
    notes         text,
    city          text,
    province      text,
    country       text,
    zip           text,
    kecamatan     text,
    kelurahan     text,
    kecamatan_id  bigint,
    kelurahan_id  bigint,
    coordinates   json,
    is_default    boolean        NOT NULL,
    created_at    timestamptz(3) NOT NULL DEFAULT now(),
    updated_at    timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT store_locations_pkey PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX store_locations_default_key ON store_locations (company_id) WHERE is_default;
CREATE INDEX store_locations_created_idx ON store_locations (company_id, created_at, id);

CREATE TABLE shipments (
    company_id           bigint         NOT NULL,
    id                   text           COLLATE "C" NOT NULL,
    order_id             text           COLLATE "C",
    provider             text           COLLATE "C" NOT NULL,
    provider_label       text           NOT NULL,
    name                 text,
    fee                  numeric,
    currency             text           COLLATE "C" NOT NULL,
    shipping_status      text           COLLATE "C" NOT NULL,
    service_type         text           COLLATE "C",
    service_name         text,
    service_code         text,
    selected_expedition  text,
    selected_delivery    text,
    courier_group        text,
    vehicle_type         text           COLLATE "C",
    bike_fuel_type       text           COLLATE "C",
    package_handover     text           COLLATE "C" NOT NULL,
    pickup_schedule      timestamptz(3),
    pickup_city          text,
    store_location_id    text           COLLATE "C",
    sender               json,
    delivery             json,
    package              json,
    driver               json,
    insurance            boolean        NOT NULL,
    insurance_fee        numeric,
    insurance_amount     numeric,
    discount_amount      numeric,
    discount_percentage  numeric,
    distance             numeric,
    tracking_url         text,
    awb                  text           COLLATE "C",
    order_no             text           COLLATE "C",
    booking_id           text           COLLATE "C",
    pickup_number        text,
    payment_id           text,
    payment_status       text           COLLATE "C",
    status_code          integer,
    cancellation_reason  text,
    cancelled_by         text,
    cancelled_source     text,
    event_timestamp      timestamptz(3),
    needs_action         boolean        NOT NULL DEFAULT false,
    problem              text,
    created_at           timestamptz(3) NOT NULL DEFAULT now(),
    updated_at           timestamptz(3) NOT NULL DEFAULT now(),
    -- Our own name of the booking that counts, and who it was made with.
    reference            text           COLLATE "C",
    adapter              text           COLLATE "C",
    picked_up_at         timestamptz(3),
    -- Where a refused cancellation leads back to, and when the carrier is asked again; in the company's time.
    cancelling_from      text           COLLATE "C",
    cancel_due_at        timestamptz(3),
    cancel_tries         integer        NOT NULL DEFAULT 0,
    -- When to ask the carrier how it goes; in the company's time.
    poll_at              timestamptz(3),
    -- Folded names and numbers: what a search looks through.
    search_text          text           NOT NULL,
    cell                 text           COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (provider || '/' || shipping_status) STORED,
    -- The carrier's code of the route, which its label shows.
    sorting_code         text,
    -- The path of the public page, /t/ and a random token.
    tracking_page        text           COLLATE "C",
    -- Cash on delivery: what the carrier collects, what it charges for it, and what it remitted.
    cod_amount           numeric,
    cod_fee              numeric,
    cod_collected_at     timestamptz(3),
    cod_remitted_at      timestamptz(3),
    cod_remitted_amount  numeric,
    -- The carrier's own price, without insurance and the fee for cash on delivery.
    carrier_fee          numeric,
    payment_qr           text,
    -- A return shipment: the delivered shipment that it sends back, its own number, and the refund that it belongs to.
    return_of            text           COLLATE "C",
    return_number        text           COLLATE "C",
    refund_id            text           COLLATE "C",
    estimate             text,
    quoted_days          numeric,
    delivered_at         timestamptz(3),
    failed_attempts      integer        NOT NULL DEFAULT 0,
    -- What scorecards group by: the receiver's city.
    area                 text,
    CONSTRAINT shipments_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT shipments_cod_check CHECK (
        cod_amount > 0 AND (cod_remitted_at IS NULL) = (cod_remitted_amount IS NULL)),
    CONSTRAINT shipments_return_check CHECK (
        (return_of IS NULL) = (return_number IS NULL) AND (return_of IS NOT NULL OR refund_id IS NULL))
) WITH (fillfactor = 80);

CREATE INDEX shipments_created_idx ON shipments (company_id, created_at, id);
CREATE INDEX shipments_cell_idx ON shipments (company_id, cell, created_at, id);
CREATE INDEX shipments_order_idx ON shipments (company_id, order_id, created_at, id) WHERE order_id IS NOT NULL;
CREATE INDEX shipments_awb_idx ON shipments (company_id, awb) WHERE awb IS NOT NULL;
CREATE INDEX shipments_order_no_idx ON shipments (company_id, order_no) WHERE order_no IS NOT NULL;
CREATE INDEX shipments_store_idx ON shipments (company_id, store_location_id) WHERE store_location_id IS NOT NULL;
CREATE INDEX shipments_search_idx ON shipments USING gin (company_id, search_text gin_trgm_ops);
CREATE INDEX shipments_cancel_idx ON shipments (company_id, cancel_due_at) WHERE cancel_due_at IS NOT NULL;
CREATE INDEX shipments_poll_idx ON shipments (company_id, poll_at) WHERE poll_at IS NOT NULL;
CREATE INDEX shipments_cancel_at_idx ON shipments (cancel_due_at) WHERE cancel_due_at IS NOT NULL;
CREATE INDEX shipments_poll_at_idx ON shipments (poll_at) WHERE poll_at IS NOT NULL;
CREATE INDEX shipments_needing_action_idx ON shipments (company_id, created_at, id) WHERE needs_action;
CREATE INDEX shipments_tracking_page_idx ON shipments (tracking_page) WHERE tracking_page IS NOT NULL;

-- Files of labels, packing slips and manifests that the worker makes, and their parts.
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

-- How a company's public tracking pages look.
CREATE TABLE tracking_page_settings (
    company_id    bigint         NOT NULL,
    display_name  text,
    color         text           COLLATE "C",
    logo          bytea,
    logo_type     text           COLLATE "C",
    language      text           COLLATE "C" NOT NULL DEFAULT 'id',
    updated_at    timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT tracking_page_settings_pkey PRIMARY KEY (company_id),
    CONSTRAINT tracking_page_settings_color_check CHECK (color ~ '^#[0-9a-f]{6}$'),
    CONSTRAINT tracking_page_settings_logo_check CHECK (
        (logo IS NULL) = (logo_type IS NULL) AND octet_length(logo) <= 20480
        AND logo_type IN ('image/png', 'image/jpeg', 'image/webp')),
    CONSTRAINT tracking_page_settings_language_check CHECK (language IN ('id', 'en'))
);

-- The consent in force. The subject is a customer (kind 'customer') or an identity as contact_identities has it; the app
-- is CRM for all channels, or one channel. What customers subscribe to stands in their row, and here who said so.
CREATE TABLE consents (
    company_id    bigint         NOT NULL,
    kind          text           COLLATE "C" NOT NULL,
    key           text           COLLATE "C" NOT NULL,
    app           text           COLLATE "C" NOT NULL,
    status        text           COLLATE "C" NOT NULL,
    is_by_person  boolean        NOT NULL,
    -- By company time; when the person said it, as far as known.
    obtained_at   timestamptz(3) NOT NULL,
    record_id     text           COLLATE "C" NOT NULL,
    CONSTRAINT consents_pkey PRIMARY KEY (company_id, kind, key, app),
    CONSTRAINT consents_status_check CHECK (status IN ('subscribe', 'unsubscribe'))
) WITH (fillfactor = 80);

-- Stops of phone numbers, addresses and channels' ids: most companies that move in have none.
CREATE INDEX consents_stops_idx ON consents (company_id) WHERE status = 'unsubscribe' AND kind <> 'customer';

-- Every decision, with what proves it.
CREATE TABLE consent_records (
    company_id    bigint         NOT NULL,
    id            text           COLLATE "C" NOT NULL,
    kind          text           COLLATE "C" NOT NULL,
    key           text           COLLATE "C" NOT NULL,
    app           text           COLLATE "C" NOT NULL,
    -- The identity as it was written; null for a customer.
    identity      text,
    status        text           COLLATE "C" NOT NULL,
    source        text           COLLATE "C" NOT NULL,
    is_by_person  boolean        NOT NULL,
    proof         json           NOT NULL,
    -- Null for the person.
    actor         json,
    obtained_at   timestamptz(3) NOT NULL,
    created_at    timestamptz(3) NOT NULL,
    CONSTRAINT consent_records_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT consent_records_status_check CHECK (status IN ('subscribe', 'unsubscribe')),
    CONSTRAINT consent_records_source_check CHECK (
        source IN ('api', 'console', 'import', 'system', 'word', 'link', 'one_click', 'channel_preference',
                   'channel_refusal')),
    CONSTRAINT consent_records_actor_check CHECK ((actor IS NULL) = is_by_person),
    CONSTRAINT consent_records_identity_check CHECK ((identity IS NULL) = (kind = 'customer'))
);

CREATE INDEX consent_records_subject_idx ON consent_records (company_id, kind, key, created_at);

CREATE TABLE consent_settings (
    company_id           bigint         NOT NULL,
    stop_words           text[]         NOT NULL,
    start_words          text[]         NOT NULL,
    stop_reply           text,
    start_reply          text,
    automatic_marketing  text           COLLATE "C" NOT NULL,
    updated_at           timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT consent_settings_pkey PRIMARY KEY (company_id),
    CONSTRAINT consent_settings_marketing_check CHECK (automatic_marketing IN ('subscribed', 'not_refused'))
);

-- One for each address that got a marketing message with a link.
CREATE TABLE unsubscribe_links (
    company_id  bigint         NOT NULL,
    kind        text           COLLATE "C" NOT NULL,
    key         text           COLLATE "C" NOT NULL,
    token       text           COLLATE "C" NOT NULL,
    identity    text           NOT NULL,
    source      text           COLLATE "C" NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT unsubscribe_links_pkey PRIMARY KEY (company_id, kind, key)
);

CREATE UNIQUE INDEX unsubscribe_links_token_key ON unsubscribe_links (company_id, token);

-- A queue: one for each choice by word, written with it and deleted once it is sent. What is sending may have been sent,
-- and is never sent again.
CREATE TABLE consent_confirmations (
    company_id     bigint         NOT NULL,
    message_id     text           COLLATE "C" NOT NULL,
    connection_id  text           COLLATE "C" NOT NULL,
    source         text           COLLATE "C" NOT NULL,
    identity       text           NOT NULL,
    status         text           COLLATE "C" NOT NULL,
    state          text           COLLATE "C" NOT NULL DEFAULT 'queued',
    due_at         timestamptz    NOT NULL DEFAULT now(),
    tries          smallint       NOT NULL DEFAULT 0,
    CONSTRAINT consent_confirmations_pkey PRIMARY KEY (company_id, message_id),
    CONSTRAINT consent_confirmations_status_check CHECK (status IN ('subscribe', 'unsubscribe')),
    CONSTRAINT consent_confirmations_state_check CHECK (state IN ('queued', 'sending'))
);

CREATE INDEX consent_confirmations_due_idx ON consent_confirmations (due_at);

-- Which steps of a parcel customers are notified of, and by which template.
CREATE TABLE notification_settings (
    company_id  bigint         NOT NULL,
    enabled     boolean        NOT NULL DEFAULT false,
    rules       json           NOT NULL,
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT notification_settings_pkey PRIMARY KEY (company_id)
);

-- One for each step of a shipment, written with the change of its status. What is sending may have been sent, and is
-- never sent again.
CREATE TABLE shipment_notifications (
    company_id   bigint         NOT NULL,
    shipment_id  text           COLLATE "C" NOT NULL,
    step         text           COLLATE "C" NOT NULL,
    status       text           COLLATE "C" NOT NULL DEFAULT 'queued',
    reason       text,
    code         text           COLLATE "C",
    message_id   text           COLLATE "C",
    -- By company time.
    occurred_at  timestamptz(3) NOT NULL,
    due_at       timestamptz    DEFAULT now(),
    tries        smallint       NOT NULL DEFAULT 0,
    updated_at   timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT shipment_notifications_pkey PRIMARY KEY (company_id, shipment_id, step),
    CONSTRAINT shipment_notifications_status_check CHECK (
        status IN ('queued', 'sending', 'sent', 'skipped', 'failed', 'unknown')),
    CONSTRAINT shipment_notifications_due_check CHECK ((due_at IS NOT NULL) = (status IN ('queued', 'sending')))
);

CREATE INDEX shipment_notifications_due_idx ON shipment_notifications (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX shipment_notifications_company_due_idx ON shipment_notifications (company_id, due_at)
    WHERE due_at IS NOT NULL;
CREATE INDEX shipments_cod_idx ON shipments (company_id, created_at, id) WHERE cod_amount IS NOT NULL;
CREATE INDEX shipments_return_idx ON shipments (company_id, return_of) WHERE return_of IS NOT NULL;

-- The last number of each company's return shipments.
CREATE TABLE return_numbers (
    company_id  bigint NOT NULL,
    last        bigint NOT NULL,
    CONSTRAINT return_numbers_pkey PRIMARY KEY (company_id)
) WITH (fillfactor = 50);

-- Every try to book with a carrier, written before the first byte leaves. What is pending was certainly not sent; what
-- is sent may have been, and is never sent again.
CREATE TABLE shipment_bookings (
    company_id   bigint         NOT NULL,
    shipment_id  text           COLLATE "C" NOT NULL,
    number       integer        NOT NULL,
    reference    text           COLLATE "C" NOT NULL,
    adapter      text           COLLATE "C" NOT NULL,
    state        text           COLLATE "C" NOT NULL,
    order_no     text           COLLATE "C",
    awb          text           COLLATE "C",
    booking_id   text           COLLATE "C",
    error        text,
    resolved_by  text           COLLATE "C",
    sends        integer        NOT NULL DEFAULT 0,
    looks        integer        NOT NULL DEFAULT 0,
    not_found    integer        NOT NULL DEFAULT 0,
    created_at   timestamptz(3) NOT NULL DEFAULT now(),
    -- In the company's time, as is the instant at which somebody has to look after it.
    sent_at      timestamptz(3),
    due_at       timestamptz(3),
    CONSTRAINT shipment_bookings_pkey PRIMARY KEY (company_id, shipment_id, number),
    CONSTRAINT shipment_bookings_reference_key UNIQUE (company_id, reference),
    CONSTRAINT shipment_bookings_shipment_fkey FOREIGN KEY (company_id, shipment_id)
        REFERENCES shipments (company_id, id) ON DELETE CASCADE,
    CONSTRAINT shipment_bookings_state_check CHECK (
        state IN ('pending', 'sent', 'unknown', 'succeeded', 'failed', 'unwanted', 'closed'))
);

CREATE UNIQUE INDEX shipment_bookings_open_key ON shipment_bookings (company_id, shipment_id)
    WHERE state IN ('pending', 'sent', 'unknown', 'succeeded');
CREATE INDEX shipment_bookings_due_idx ON shipment_bookings (company_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX shipment_bookings_due_at_idx ON shipment_bookings (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX shipment_bookings_order_no_idx ON shipment_bookings (company_id, order_no) WHERE order_no IS NOT NULL;

-- Carriers' statements of the cash that they collected and remitted.
CREATE TABLE settlements (
    company_id       bigint         NOT NULL,
    id               text           COLLATE "C" NOT NULL,
    provider         text           COLLATE "C" NOT NULL,
    reference        text           COLLATE "C" NOT NULL,
    remitted_at      timestamptz(3) NOT NULL,
    currency         text           COLLATE "C" NOT NULL,
    parcels          integer        NOT NULL,
    differing        integer        NOT NULL,
    expected_amount  numeric        NOT NULL,
    remitted_amount  numeric        NOT NULL,
    fingerprint      bytea          NOT NULL,
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT settlements_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT settlements_reference_key UNIQUE (company_id, provider, reference),
    CONSTRAINT settlements_parcels_check CHECK (parcels > 0 AND differing BETWEEN 0 AND parcels)
);

CREATE INDEX settlements_created_idx ON settlements (company_id, created_at, id);

-- The parcels of a statement, as the carrier states them, with what was expected.
CREATE TABLE settlement_lines (
    company_id       bigint         NOT NULL,
    settlement_id    text           COLLATE "C" NOT NULL,
    number           integer        NOT NULL,
    parcel           text           NOT NULL,
    shipment_id      text           COLLATE "C",
    cod_amount       numeric,
    cod_fee          numeric,
    carrier_fee      numeric,
    insurance_fee    numeric,
    expected_amount  numeric        NOT NULL,
    remitted_amount  numeric        NOT NULL,
    CONSTRAINT settlement_lines_pkey PRIMARY KEY (company_id, settlement_id, number),
    CONSTRAINT settlement_lines_settlement_fkey FOREIGN KEY (company_id, settlement_id)
        REFERENCES settlements (company_id, id) ON DELETE CASCADE
);

CREATE INDEX settlement_lines_shipment_idx ON settlement_lines (company_id, shipment_id)
    WHERE shipment_id IS NOT NULL;

-- Every amount of cash on delivery that is not as expected, until somebody resolves it.
CREATE TABLE cod_differences (
    company_id     bigint         NOT NULL,
    id             text           COLLATE "C" NOT NULL,
    kind           text           COLLATE "C" NOT NULL,
    parcel         text           NOT NULL,
    shipment_id    text           COLLATE "C",
    order_id       text           COLLATE "C",
    settlement_id  text           COLLATE "C",
    line           integer,
    currency       text           COLLATE "C" NOT NULL,
    expected       numeric        NOT NULL,
    actual         numeric        NOT NULL,
    difference     numeric        NOT NULL,
    note           text,
    created_at     timestamptz(3) NOT NULL DEFAULT now(),
    resolved_at    timestamptz(3),
    cell           text           COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (kind || '/' || CASE WHEN resolved_at IS NULL THEN 'open' ELSE 'resolved' END) STORED,
    CONSTRAINT cod_differences_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT cod_differences_settlement_fkey FOREIGN KEY (company_id, settlement_id)
        REFERENCES settlements (company_id, id) ON DELETE CASCADE,
    CONSTRAINT cod_differences_kind_check CHECK (kind IN (
        'order_amount', 'cod_amount', 'cod_fee', 'carrier_fee', 'insurance_fee', 'remitted_amount', 'unknown_parcel',
        'not_cash_on_delivery', 'not_delivered', 'remitted_before', 'returned')),
    CONSTRAINT cod_differences_difference_check CHECK (abs(difference) = abs(actual - expected) AND difference <> 0)
);

CREATE INDEX cod_differences_created_idx ON cod_differences (company_id, created_at, id);
CREATE INDEX cod_differences_cell_idx ON cod_differences (company_id, cell, created_at, id);
CREATE INDEX cod_differences_shipment_idx ON cod_differences (company_id, shipment_id) WHERE shipment_id IS NOT NULL;
CREATE INDEX cod_differences_settlement_idx ON cod_differences (company_id, settlement_id)
    WHERE settlement_id IS NOT NULL;

-- What carriers said of a shipment, applied or not. Append-only.
CREATE TABLE shipment_events (
    company_id   bigint         NOT NULL,
    shipment_id  text           COLLATE "C" NOT NULL,
    dedupe_key   text           COLLATE "C" NOT NULL,
    occurred_at  timestamptz(3) NOT NULL,
    received_at  timestamptz(3) NOT NULL DEFAULT now(),
    status       text           COLLATE "C",
    status_code  integer,
    text         text           NOT NULL,
    reason       text,
    receiver     text,
    proof        text[]         NOT NULL,
    source       text           COLLATE "C" NOT NULL,
    applied      boolean        NOT NULL,
    CONSTRAINT shipment_events_pkey PRIMARY KEY (company_id, shipment_id, dedupe_key)
);

-- Callbacks as they came in. They are deleted once their time is over.
CREATE TABLE carrier_callbacks (
    company_id    bigint         NOT NULL,
    id            bigint         GENERATED ALWAYS AS IDENTITY,
    adapter       text           COLLATE "C" NOT NULL,
    digest        bytea          NOT NULL,
    body          bytea          NOT NULL,
    events        json           NOT NULL,
    received_at   timestamptz(3) NOT NULL DEFAULT now(),
    due_at        timestamptz(3) DEFAULT now(),
    tries         integer        NOT NULL DEFAULT 0,
    processed_at  timestamptz(3),
    note          text,
    CONSTRAINT carrier_callbacks_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT carrier_callbacks_digest_key UNIQUE (company_id, adapter, digest)
);

CREATE INDEX carrier_callbacks_due_idx ON carrier_callbacks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX carrier_callbacks_turn_idx ON carrier_callbacks (company_id, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX carrier_callbacks_received_idx ON carrier_callbacks (company_id, received_at);


-- Messages, what became of them, their templates, and the records of the calls that asked for them.

CREATE TABLE messages (
    company_id         bigint         NOT NULL,
    -- A UUID: the messageId2 of the API.
    id                 text           COLLATE "C" NOT NULL,
    direction          text           COLLATE "C" NOT NULL,
    source             text           COLLATE "C" NOT NULL,
    connection_id      text           COLLATE "C" NOT NULL,
    contact_id         text           COLLATE "C",
    customer_id        text           COLLATE "C",
    -- Whom the channel knows the customer as.
    identity_kind      text           COLLATE "C" NOT NULL,
    identity           text           COLLATE "C" NOT NULL,
    client_number      text           NOT NULL,
    connected_number   text           NOT NULL,
    -- The channel's own id, as soon as it is known.
    provider_id        text           COLLATE "C",
    quoted             text           COLLATE "C",
    type               text           COLLATE "C" NOT NULL,
    body               text,
    subject            text,
    template_id        text           COLLATE "C",
    media_url          text,
    interactive        json,
    interaction        json,
    metadata           json,
    feature_source     text           COLLATE "C" NOT NULL,
    agent_id           bigint,
    status             text           COLLATE "C" NOT NULL,
    error              json,
    conflict           boolean        NOT NULL DEFAULT false,
    -- Counts the changes of the status, so that receivers can put reports of them in order.
    sequence           integer        NOT NULL DEFAULT 0,
    -- Instants are the company's.
    created_at         timestamptz(3) NOT NULL,
    -- When the channel answered our call that it took the message.
    accepted_at        timestamptz(3),
    sent_at            timestamptz(3),
    delivered_at       timestamptz(3),
    read_at            timestamptz(3),
    replied_at         timestamptz(3),
    failed_at          timestamptz(3),
    -- Where the record of the call is that asked for it.
    request_id         text           COLLATE "C",
    request_stored_at  timestamptz(3),
    ticket_id          text           COLLATE "C",
    -- Of a letter that came in: the ids of the conversation up to it, the oldest first.
    thread             text[],
    -- Of a received mail: what the receiving server found out about its sender.
    authentication     json,
    attachments        json           NOT NULL DEFAULT '[]',
    -- What it has besides text, by the names of the API.
    parts              json,
    reactions          json,
    edited_at          timestamptz(3),
    revoked_at         timestamptz(3),
    -- As the channel reported it, with the cost once it is fixed.
    pricing            json,
    CONSTRAINT messages_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT messages_direction_check CHECK (direction IN ('in', 'out')),
    CONSTRAINT messages_status_check CHECK (CASE direction
        WHEN 'in' THEN status = 'received'
        ELSE status IN ('pending', 'sent', 'delivered', 'read', 'failed') END)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX messages_provider_key ON messages (company_id, source, provider_id);

-- What went to a customer over a channel: what a watermark speaks of, and what an answer may be to.
CREATE INDEX messages_identity_idx ON messages (company_id, source, identity, created_at) WHERE direction = 'out';

CREATE INDEX messages_ticket_idx ON messages (company_id, ticket_id, id) WHERE ticket_id IS NOT NULL;

-- What reports walk. Nothing but what never changes: what becomes of a message is written to its row alone.
CREATE INDEX messages_created_idx ON messages (company_id, created_at) WHERE direction = 'out';

-- Out there, and neither taken nor refused as far as anybody knows. None of its columns changes once a channel spoke,
-- so that later reports touch no index.
CREATE INDEX messages_unsettled_idx ON messages (created_at)
    WHERE direction = 'out' AND sent_at IS NULL AND failed_at IS NULL;

-- Imported. A rate holds until one with a later day.
CREATE TABLE message_rates (
    -- Null: of all companies without a rate of their own.
    company_id   bigint,
    -- ISO 3166, or * for every other country.
    country      text           COLLATE "C" NOT NULL,
    category     text           COLLATE "C" NOT NULL,
    starts_on    date           NOT NULL,
    currency     text           COLLATE "C" NOT NULL,
    price        numeric        NOT NULL,
    imported_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT message_rates_key UNIQUE NULLS NOT DISTINCT (company_id, country, category, currency, starts_on),
    CONSTRAINT message_rates_country_check CHECK (country ~ '^([A-Z]{2}|\*)$'),
    CONSTRAINT message_rates_price_check CHECK (price >= 0)
);

-- One for each message that arrived and whose price the channel reported. An amount never changes.
CREATE TABLE message_costs (
    company_id   bigint         NOT NULL,
    message_id   text           COLLATE "C" NOT NULL,
    source       text           COLLATE "C" NOT NULL,
    template_id  text           COLLATE "C",
    category     text           COLLATE "C" NOT NULL,
    country      text           COLLATE "C" NOT NULL,
    is_billable  boolean        NOT NULL,
    -- Both null if there was no rate.
    amount       numeric,
    currency     text           COLLATE "C",
    -- When it arrived, by company time.
    charged_at   timestamptz(3) NOT NULL,
    CONSTRAINT message_costs_pkey PRIMARY KEY (company_id, message_id),
    CONSTRAINT message_costs_amount_check CHECK (
        (amount IS NULL) = (currency IS NULL) AND (is_billable OR amount IS NOT DISTINCT FROM 0))
);

CREATE INDEX message_costs_charged_idx ON message_costs (company_id, charged_at);
CREATE INDEX message_costs_unpriced_idx ON message_costs (company_id, message_id) WHERE amount IS NULL;

-- Append-only: what became of messages, and what channels said of it, known or not.
CREATE TABLE message_events (
    company_id   bigint         NOT NULL,
    message_id   text           COLLATE "C" NOT NULL,
    kind         text           COLLATE "C" NOT NULL,
    -- As the channel said it, so that a report that is repeated is recognised; never after the present.
    reported_at  timestamptz(3) NOT NULL,
    at           timestamptz(3) NOT NULL,
    is_implied   boolean        NOT NULL,
    -- The change of the message's status that it made; null when it made none.
    sequence     integer,
    code         text,
    detail       text,
    number       bigint         GENERATED ALWAYS AS IDENTITY,
    CONSTRAINT message_events_pkey PRIMARY KEY (company_id, message_id, kind, reported_at, is_implied)
);

CREATE TABLE message_templates (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    name         text           COLLATE "C" NOT NULL,
    language     text           COLLATE "C" NOT NULL,
    source       text           COLLATE "C" NOT NULL,
    category     text           COLLATE "C" NOT NULL,
    header       json,
    body         text           NOT NULL,
    footer       text,
    buttons      json           NOT NULL,
    status       text           COLLATE "C" NOT NULL,
    reason       text,
    -- Of the channel that has it too; null where none has.
    provider_id  text           COLLATE "C",
    synced_at    timestamptz(3),
    created_at   timestamptz(3) NOT NULL DEFAULT now(),
    updated_at   timestamptz(3) NOT NULL DEFAULT now(),
    parameter_format    text    COLLATE "C" NOT NULL DEFAULT 'POSITIONAL',
    cards               json    NOT NULL DEFAULT '[]',
    limited_time_offer  json,
    ttl_seconds         integer,
    authentication      json,
    examples            json,
    quality             text    COLLATE "C",
    not_sendable_reason text,
    -- The account that has it, such as a WhatsApp business account.
    owner_id            text    COLLATE "C",
    CONSTRAINT message_templates_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT message_templates_name_key UNIQUE (company_id, name, language),
    CONSTRAINT message_templates_source_check CHECK (source IN ('CRM', 'AUTH')),
    CONSTRAINT message_templates_category_check CHECK (category IN ('UTILITY', 'MARKETING', 'AUTHENTICATION')),
    CONSTRAINT message_templates_status_check CHECK (
        status IN ('PENDING', 'APPROVED', 'REJECTED', 'PAUSED', 'DISABLED')),
    CONSTRAINT message_templates_format_check CHECK (parameter_format IN ('POSITIONAL', 'NAMED')),
    CONSTRAINT message_templates_quality_check CHECK (quality IN ('GREEN', 'YELLOW', 'RED'))
);

CREATE INDEX message_templates_unsubmitted_idx ON message_templates (company_id) WHERE provider_id IS NULL;
CREATE INDEX message_templates_pending_idx ON message_templates (company_id) WHERE status = 'PENDING';
CREATE INDEX message_templates_created_idx ON message_templates (company_id, created_at, id);

-- One record for each call that asked for a message. Partitioned by the month in which it was stored, which is not the
-- company's month where a test environment's clock was moved; old months are dropped whole.
CREATE TABLE api_requests (
    company_id     bigint         NOT NULL,
    stored_at      timestamptz(3) NOT NULL,
    id             text           COLLATE "C" NOT NULL,
    created_at     timestamptz(3) NOT NULL,
    message_id     text           COLLATE "C",
    template_id    text           COLLATE "C",
    source         text           COLLATE "C",
    endpoint_type  text           COLLATE "C" NOT NULL,
    -- Of a call that made no message. Otherwise the message knows.
    failed_at      timestamptz(3),
    -- The request and the answer, sealed with the installation's key.
    snapshot       bytea          NOT NULL,
    CONSTRAINT api_requests_pkey PRIMARY KEY (company_id, stored_at, id),
    CONSTRAINT api_requests_endpoint_check CHECK (endpoint_type IN (
        'send_message', 'send_message_template', 'send_message_media', 'send_message_interactive'))
) PARTITION BY RANGE (stored_at);

CREATE TABLE api_requests_default PARTITION OF api_requests DEFAULT;

CREATE INDEX api_requests_created_idx ON api_requests (company_id, created_at, id) INCLUDE (stored_at);
CREATE INDEX api_requests_template_idx ON api_requests (company_id, template_id, created_at, id) INCLUDE (stored_at)
    WHERE template_id IS NOT NULL;


-- Analytics.

-- What agents did and how long customers waited for it. Derived from tickets and their messages: what has to be taken
-- back is deleted, and all of it can be made anew.
CREATE TABLE support_samples (
    company_id  bigint      NOT NULL,
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    agent_id    bigint      NOT NULL,
    ticket_id   text        COLLATE "C" NOT NULL,
    cycle       integer     NOT NULL,
    source      text        COLLATE "C" NOT NULL,
    metric      text        COLLATE "C" NOT NULL,
    -- Microseconds, so that sums are exact.
    micros      bigint      NOT NULL,
    started_at  timestamptz NOT NULL,
    at          timestamptz NOT NULL,
    message_id  text        COLLATE "C",
    CONSTRAINT support_samples_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT support_samples_metric_check CHECK (
        metric IN ('handled', 'first_response', 'response', 'resolution')),
    CONSTRAINT support_samples_micros_check CHECK (micros >= 0)
);

CREATE UNIQUE INDEX support_samples_same_key
    ON support_samples (company_id, ticket_id, cycle, metric, agent_id, at, message_id) NULLS NOT DISTINCT;
CREATE INDEX support_samples_agent_idx ON support_samples (company_id, agent_id, at, id);
-- The two ends of a window, of which the days are not whole.
CREATE INDEX support_samples_at_idx
    ON support_samples (company_id, at) INCLUDE (agent_id, source, metric, micros, ticket_id);

-- The samples of one agent on one channel in one day or one month in UTC, added up.
CREATE TABLE analytics_sums (
    company_id             bigint      NOT NULL,
    span                   text        COLLATE "C" NOT NULL,
    starts_on              date        NOT NULL,
    agent_id               bigint      NOT NULL,
    source                 text        COLLATE "C" NOT NULL,
    first_response_count   bigint      NOT NULL,
    first_response_micros  bigint      NOT NULL,
    response_count         bigint      NOT NULL,
    response_micros        bigint      NOT NULL,
    resolution_count       bigint      NOT NULL,
    resolution_micros      bigint      NOT NULL,
    -- The tickets that the agent handled then and never before.
    tickets_begun          bigint      NOT NULL,
    last_handled_at        timestamptz,
    CONSTRAINT analytics_sums_pkey PRIMARY KEY (company_id, span, starts_on, agent_id, source),
    CONSTRAINT analytics_sums_span_check CHECK (span IN ('day', 'month'))
) WITH (fillfactor = 80);

-- The days on which an agent handled a ticket. Tickets of several days would be counted several times, did one add up
-- the days' tickets.
CREATE TABLE analytics_tickets (
    company_id  bigint NOT NULL,
    ticket_id   text   COLLATE "C" NOT NULL,
    agent_id    bigint NOT NULL,
    source      text   COLLATE "C" NOT NULL,
    -- In order; the first and the last are null when there is none (any more).
    days        date[] NOT NULL DEFAULT '{}',
    first_day   date,
    last_day    date,
    CONSTRAINT analytics_tickets_pkey PRIMARY KEY (company_id, ticket_id, agent_id)
);

CREATE INDEX analytics_tickets_first_idx ON analytics_tickets (company_id, first_day, agent_id);
CREATE INDEX analytics_tickets_long_idx ON analytics_tickets (company_id, last_day, first_day)
    WHERE last_day > first_day;


-- Support: agents, tickets and what happened to them.

CREATE TABLE support_settings (
    company_id           bigint         NOT NULL,
    reopen_window_hours  integer        NOT NULL DEFAULT 24,
    auto_resolve_hours   integer        NOT NULL DEFAULT 72,
    reopen_assignee      text           COLLATE "C" NOT NULL DEFAULT 'previous',
    updated_at           timestamptz(3) NOT NULL DEFAULT now(),
    ask_rating           boolean        NOT NULL DEFAULT false,
    auto_assign          boolean        NOT NULL DEFAULT false,
    CONSTRAINT support_settings_pkey PRIMARY KEY (company_id),
    CONSTRAINT support_settings_hours_check CHECK (reopen_window_hours >= 0 AND auto_resolve_hours >= 0),
    CONSTRAINT support_settings_assignee_check CHECK (reopen_assignee IN ('previous', 'queue'))
);

CREATE TABLE agents (
    company_id       bigint         NOT NULL,
    id               bigint         GENERATED ALWAYS AS IDENTITY,
    name             text           NOT NULL,
    -- Folded: what a search looks through.
    name_text        text           COLLATE "C" NOT NULL,
    type             text           COLLATE "C" NOT NULL,
    active           boolean        NOT NULL DEFAULT true,
    -- The person of the console who is this agent.
    user_id          bigint,
    -- Whoever answers on the company's own telephone.
    is_business_app  boolean        NOT NULL DEFAULT false,
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    updated_at       timestamptz(3) NOT NULL DEFAULT now(),
    -- The counter's cell and the list's.
    cell             text           COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (type || CASE WHEN active THEN '/active' ELSE '/inactive' END) STORED,
    CONSTRAINT agents_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT agents_user_key UNIQUE (company_id, user_id),
    CONSTRAINT agents_type_check CHECK (type IN ('human', 'ai')),
    CONSTRAINT agents_user_check CHECK (user_id IS NULL OR type = 'human'),
    CONSTRAINT agents_business_app_check CHECK (type = 'human' OR NOT is_business_app)
);

CREATE UNIQUE INDEX agents_business_app_key ON agents (company_id) WHERE is_business_app;
CREATE INDEX agents_created_idx ON agents (company_id, created_at, id);
CREATE INDEX agents_cell_idx ON agents (company_id, cell, created_at, id);

CREATE TABLE ticket_labels (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    name        text           NOT NULL,
    color       text           COLLATE "C" NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT ticket_labels_pkey PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX ticket_labels_name_key ON ticket_labels (company_id, lower(name));
CREATE INDEX ticket_labels_created_idx ON ticket_labels (company_id, created_at, id);

-- Agents are never deleted, so their ids stay valid.
CREATE TABLE teams (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    name        text           NOT NULL,
    agent_ids   bigint[]       NOT NULL,
    auto_assign boolean        NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT teams_pkey PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX teams_name_key ON teams (company_id, lower(name));
CREATE INDEX teams_created_idx ON teams (company_id, created_at, id);

CREATE TABLE saved_replies (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    shortcut    text           COLLATE "C" NOT NULL,
    text        text           NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT saved_replies_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT saved_replies_shortcut_key UNIQUE (company_id, shortcut)
);

CREATE INDEX saved_replies_created_idx ON saved_replies (company_id, created_at, id);

CREATE TABLE ticket_views (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    name        text           NOT NULL,
    -- Whose it is; null: everybody's.
    agent_id    bigint,
    filters     json           NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT ticket_views_pkey PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX ticket_views_name_key ON ticket_views (company_id, coalesce(agent_id, 0), lower(name));
CREATE INDEX ticket_views_created_idx ON ticket_views (company_id, created_at, id);

CREATE TABLE macros (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    name        text           NOT NULL,
    actions     json           NOT NULL,
    note        text,
    reply       text,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT macros_pkey PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX macros_name_key ON macros (company_id, lower(name));
CREATE INDEX macros_created_idx ON macros (company_id, created_at, id);

-- What agents have typed in the console and not sent.
CREATE TABLE reply_drafts (
    company_id  bigint         NOT NULL,
    ticket_id   text           COLLATE "C" NOT NULL,
    agent_id    bigint         NOT NULL,
    body        text           NOT NULL,
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    note        text           NOT NULL DEFAULT '',
    CONSTRAINT reply_drafts_pkey PRIMARY KEY (company_id, ticket_id, agent_id)
);

-- Whom notes mention, until they open the ticket.
CREATE TABLE ticket_mentions (
    company_id  bigint         NOT NULL,
    agent_id    bigint         NOT NULL,
    ticket_id   text           COLLATE "C" NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT ticket_mentions_pkey PRIMARY KEY (company_id, agent_id, ticket_id)
);

-- Replies that agents send later; a row is deleted when its reply is sent. Instants are the company's.
CREATE TABLE scheduled_replies (
    company_id      bigint         NOT NULL,
    id              text           COLLATE "C" NOT NULL,
    ticket_id       text           COLLATE "C" NOT NULL,
    agent_id        bigint         NOT NULL,
    body            text           NOT NULL,
    send_at         timestamptz(3) NOT NULL,
    status          text           COLLATE "C" NOT NULL DEFAULT 'scheduled',
    failure_reason  text,
    tries           integer        NOT NULL DEFAULT 0,
    -- When it is tried next, in the company's time; null once it failed.
    due_at          timestamptz(3),
    created_at      timestamptz(3) NOT NULL,
    CONSTRAINT scheduled_replies_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT scheduled_replies_status_check CHECK (status IN ('scheduled', 'sending', 'failed')),
    CONSTRAINT scheduled_replies_failure_check CHECK ((status = 'failed') = (failure_reason IS NOT NULL)),
    CONSTRAINT scheduled_replies_due_check CHECK ((status = 'failed') = (due_at IS NULL))
);

CREATE INDEX scheduled_replies_ticket_idx ON scheduled_replies (company_id, ticket_id, send_at, id);
CREATE INDEX scheduled_replies_due_idx ON scheduled_replies (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX scheduled_replies_company_due_idx ON scheduled_replies (company_id, due_at) WHERE due_at IS NOT NULL;

-- One for each company; without one it is always open.
CREATE TABLE business_hours (
    company_id  bigint         NOT NULL,
    time_zone   text           COLLATE "C" NOT NULL,
    weekly      json           NOT NULL,
    holidays    json           NOT NULL,
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT business_hours_pkey PRIMARY KEY (company_id)
);

-- Empty conditions match everything.
CREATE TABLE sla_policies (
    company_id              bigint         NOT NULL,
    id                      text           COLLATE "C" NOT NULL,
    name                    text           NOT NULL,
    position                integer        NOT NULL,
    priorities              text[]         COLLATE "C" NOT NULL,
    sources                 text[]         COLLATE "C" NOT NULL,
    label_ids               text[]         COLLATE "C" NOT NULL,
    first_response_minutes  integer,
    resolution_minutes      integer,
    in_business_hours       boolean        NOT NULL,
    created_at              timestamptz(3) NOT NULL DEFAULT now(),
    updated_at              timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT sla_policies_pkey PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX sla_policies_name_key ON sla_policies (company_id, lower(name));
CREATE INDEX sla_policies_created_idx ON sla_policies (company_id, created_at, id);

-- Agents who are there, in real time; without a row an agent is offline.
CREATE TABLE agent_presences (
    company_id  bigint         NOT NULL,
    agent_id    bigint         NOT NULL,
    status      text           COLLATE "C" NOT NULL,
    until       timestamptz(3) NOT NULL,
    CONSTRAINT agent_presences_pkey PRIMARY KEY (company_id, agent_id),
    CONSTRAINT agent_presences_status_check CHECK (status IN ('online', 'away'))
);

-- A cycle of a ticket is asked about once.
CREATE TABLE ratings (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    ticket_id    text           COLLATE "C" NOT NULL,
    cycle        integer        NOT NULL,
    agent_id     bigint,
    customer_id  text           COLLATE "C",
    source       text           COLLATE "C" NOT NULL,
    -- Who has it may answer; it cannot be guessed.
    token        text           COLLATE "C" NOT NULL,
    status       text           COLLATE "C" NOT NULL DEFAULT 'queued',
    tries        integer        NOT NULL DEFAULT 0,
    due_at       timestamptz(3) NOT NULL DEFAULT now(),
    score        smallint,
    comment      text,
    created_at   timestamptz(3) NOT NULL,
    rated_at     timestamptz(3),
    CONSTRAINT ratings_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT ratings_ticket_key UNIQUE (company_id, ticket_id, cycle),
    CONSTRAINT ratings_token_key UNIQUE (company_id, token),
    CONSTRAINT ratings_status_check CHECK (status IN ('queued', 'asked', 'failed', 'rated')),
    CONSTRAINT ratings_score_check CHECK ((status = 'rated') = (score IS NOT NULL) AND score BETWEEN 1 AND 5)
);

CREATE INDEX ratings_created_idx ON ratings (company_id, created_at, id);
CREATE INDEX ratings_agent_idx ON ratings (company_id, agent_id, created_at, id);
CREATE INDEX ratings_due_idx ON ratings (due_at) WHERE status = 'queued';
CREATE INDEX ratings_rated_idx ON ratings (company_id, rated_at) INCLUDE (agent_id, source, score)
    WHERE status = 'rated';

-- Instants are the company's.
CREATE TABLE tickets (
    company_id        bigint         NOT NULL,
    id                text           COLLATE "C" NOT NULL,
    source            text           COLLATE "C" NOT NULL,
    connection_id     text           COLLATE "C" NOT NULL,
    contact_id        text           COLLATE "C" NOT NULL,
    customer_id       text           COLLATE "C",
    -- Whom the channel knows the customer as: where replies go.
    identity          text           COLLATE "C" NOT NULL,
    client_number     text           NOT NULL,
    connected_number  text           NOT NULL,
    status            text           COLLATE "C" NOT NULL,
    -- The owner; once it is resolved, the last one.
    agent_id          bigint,
    -- People have taken over: no AI agent may answer until the ticket is given to it again.
    ai_paused         boolean        NOT NULL DEFAULT false,
    -- From the customer's first message to the ticket's resolution; a reopened ticket begins another one.
    cycle             integer        NOT NULL DEFAULT 1,
    -- What the clock of the cycle has to remember.
    clock             json           NOT NULL DEFAULT '{}',
    waiting_since     timestamptz(3),
    -- The number of its newest event.
    number            integer        NOT NULL DEFAULT 0,
    last_message      text,
    last_message_at   timestamptz(3) NOT NULL,
    -- The last message or reopening.
    silent_since      timestamptz(3) NOT NULL,
    resolved_at       timestamptz(3),
    resolved_reason   text           COLLATE "C",
    created_at        timestamptz(3) NOT NULL,
    updated_at        timestamptz(3) NOT NULL,
    -- The counter's cell and the list's.
    cell              text           COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (status || '/' || source) STORED,
    label_ids         text[]         COLLATE "C" NOT NULL DEFAULT '{}',
    priority          text           COLLATE "C" NOT NULL DEFAULT 'normal',
    team_id           text           COLLATE "C",
    snoozed_until     timestamptz(3),
    -- How it stands against its targets.
    sla               json,
    -- When the next of them is missed.
    sla_due_at        timestamptz(3),
    -- The newest of its customer.
    rating            smallint,
    -- Where the conversation continues.
    merged_into_id    text           COLLATE "C",
    CONSTRAINT tickets_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT tickets_priority_check CHECK (priority IN ('low', 'normal', 'high', 'urgent')),
    CONSTRAINT tickets_snoozed_check CHECK (snoozed_until IS NULL OR status <> 'resolved'),
    CONSTRAINT tickets_status_check CHECK (CASE status
        WHEN 'open' THEN agent_id IS NULL
        WHEN 'assigned' THEN agent_id IS NOT NULL
        ELSE status = 'resolved' END),
    CONSTRAINT tickets_resolved_check CHECK ((status = 'resolved') = (resolved_at IS NOT NULL)),
    CONSTRAINT tickets_merged_check CHECK (merged_into_id <> id)
) WITH (fillfactor = 80);

-- One that is not resolved for each contact and connection.
CREATE UNIQUE INDEX tickets_active_key ON tickets (company_id, connection_id, contact_id) WHERE status <> 'resolved';

CREATE INDEX tickets_thread_idx ON tickets (company_id, contact_id, connection_id, resolved_at);
CREATE INDEX tickets_created_idx ON tickets (company_id, created_at, id);
CREATE INDEX tickets_cell_idx ON tickets (company_id, cell, created_at, id);
CREATE INDEX tickets_last_message_idx ON tickets (company_id, last_message_at, id);
CREATE INDEX tickets_cell_last_message_idx ON tickets (company_id, cell, last_message_at, id);
CREATE INDEX tickets_agent_idx ON tickets (company_id, agent_id, status, last_message_at, id)
    WHERE agent_id IS NOT NULL;
CREATE INDEX tickets_customer_idx ON tickets (company_id, customer_id, created_at, id) WHERE customer_id IS NOT NULL;

CREATE INDEX tickets_waiting_idx ON tickets (company_id, waiting_since, id);
CREATE INDEX tickets_cell_waiting_idx ON tickets (company_id, cell, waiting_since, id);
CREATE INDEX tickets_team_idx ON tickets (company_id, team_id, status, last_message_at, id) WHERE team_id IS NOT NULL;
CREATE INDEX tickets_labels_idx ON tickets USING gin (company_id, label_ids) WHERE label_ids <> '{}';

-- What the inbox counts.
CREATE INDEX tickets_counts_idx ON tickets (company_id) INCLUDE (agent_id, snoozed_until, waiting_since)
    WHERE status <> 'resolved';

-- Those that the worker wakes.
CREATE INDEX tickets_snoozed_idx ON tickets (company_id, snoozed_until) WHERE snoozed_until IS NOT NULL;

-- Those that miss a target next.
CREATE INDEX tickets_sla_due_idx ON tickets (company_id, sla_due_at) WHERE sla_due_at IS NOT NULL;

-- What the search over tickets looks through.
CREATE INDEX messages_text_idx ON messages USING gin (company_id, lower(left(body, 2000)) gin_trgm_ops)
    WHERE ticket_id IS NOT NULL;
CREATE INDEX contacts_name_idx ON contacts USING gin (company_id, lower(name) gin_trgm_ops);
CREATE INDEX contact_identities_key_idx ON contact_identities USING gin (company_id, lower(key) gin_trgm_ops);

-- Those that silence may resolve: nobody waits for an answer.
CREATE INDEX tickets_silent_idx ON tickets (company_id, silent_since) WHERE status <> 'resolved' AND waiting_since IS NULL;

-- Append-only. Numbers are handed out under the ticket's lock, so they are in the order in which things happened to it:
-- all that is measured can be found again by going through them.
CREATE TABLE ticket_events (
    company_id  bigint         NOT NULL,
    ticket_id   text           COLLATE "C" NOT NULL,
    number      integer        NOT NULL,
    cycle       integer        NOT NULL,
    kind        text           COLLATE "C" NOT NULL,
    at          timestamptz(3) NOT NULL,
    -- Whose ticket it is from then on, or who wrote.
    agent_id    bigint,
    -- What that agent was then.
    agent_type  text           COLLATE "C",
    -- Who did it, where somebody said so.
    actor_id    bigint,
    actor_type  text           COLLATE "C",
    message_id  text           COLLATE "C",
    reason      text           COLLATE "C",
    CONSTRAINT ticket_events_pkey PRIMARY KEY (company_id, ticket_id, number),
    CONSTRAINT ticket_events_kind_check CHECK (kind IN (
        'opened', 'assigned', 'unassigned', 'handover', 'resolved', 'reopened', 'heard', 'said', 'announced',
        'labels', 'priority', 'team', 'snoozed', 'woken', 'merged'))
);

CREATE INDEX ticket_events_message_idx ON ticket_events (company_id, message_id) WHERE message_id IS NOT NULL;

CREATE TABLE ticket_notes (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    ticket_id   text           COLLATE "C" NOT NULL,
    agent_id    bigint         NOT NULL,
    body        text           NOT NULL,
    created_at  timestamptz(3) NOT NULL,
    CONSTRAINT ticket_notes_pkey PRIMARY KEY (company_id, id)
);

CREATE INDEX ticket_notes_ticket_idx ON ticket_notes (company_id, ticket_id, created_at, id);


-- Partitions.

-- The product may not create or drop tables; this is the one thing of that kind it may ask for, within bounds.
-- Each partition covers one day in UTC. Rows that missed their partition wait in the default one.
CREATE FUNCTION keep_day_partitions(parent text, days_ahead integer, days_kept integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    today      date := (now() AT TIME ZONE 'UTC')::date;
    instant    text;
    day        date;
    partition  text;
BEGIN
    instant := CASE parent WHEN 'events' THEN 'created_at' WHEN 'webhook_attempts' THEN 'started_at'
                           WHEN 'api_calls' THEN 'called_at' END;
    IF instant IS NULL THEN
        RAISE EXCEPTION '% is not partitioned by day', parent;
    END IF;
    days_ahead := LEAST(days_ahead, 60);
    days_kept := GREATEST(days_kept, 30);
    FOR day IN SELECT today + n FROM generate_series(0, days_ahead) n LOOP
        partition := parent || '_' || to_char(day, 'YYYYMMDD');
        CONTINUE WHEN to_regclass(partition) IS NOT NULL;
        BEGIN
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)', partition, parent,
                           day || ' 00:00:00+00', (day + 1) || ' 00:00:00+00');
        EXCEPTION WHEN duplicate_table OR check_violation THEN
            NULL;  -- another caller made it, or the default partition holds rows of that day: they stay there
        END;
    END LOOP;
    FOR partition IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                      WHERE i.inhparent = parent::regclass
                        AND c.relname ~ ('^' || parent || '_\d{8}$')
                        AND to_date(right(c.relname, 8), 'YYYYMMDD') < today - days_kept LOOP
        EXECUTE format('DROP TABLE %I', partition);
    END LOOP;
    EXECUTE format('DELETE FROM %I WHERE %I < now() - make_interval(days => %s)', parent || '_default', instant, days_kept);
END $$;

REVOKE ALL ON FUNCTION keep_day_partitions(text, integer, integer) FROM PUBLIC;

-- The same for months. The totals of a month are kept in cells of their own, and go with it.
CREATE FUNCTION keep_month_partitions(parent text, months_ahead integer, months_kept integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    this_month  date := date_trunc('month', now() AT TIME ZONE 'UTC')::date;
    oldest      date;
    month       date;
    partition   text;
BEGIN
    IF parent <> 'api_requests' THEN
        RAISE EXCEPTION '% is not partitioned by month', parent;
    END IF;
    months_ahead := LEAST(months_ahead, 12);
    oldest := (this_month - make_interval(months => GREATEST(months_kept, 1)))::date;
    FOR month IN SELECT (this_month + make_interval(months => n))::date FROM generate_series(0, months_ahead) n LOOP
        partition := parent || '_' || to_char(month, 'YYYYMM');
        CONTINUE WHEN to_regclass(partition) IS NOT NULL;
        BEGIN
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)', partition, parent,
                           month || ' 00:00:00+00', (month + interval '1 month')::date || ' 00:00:00+00');
        EXCEPTION WHEN duplicate_table OR check_violation THEN
            NULL;  -- another caller made it, or the default partition holds rows of that month: they stay there
        END;
    END LOOP;
    FOR partition IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                      WHERE i.inhparent = parent::regclass
                        AND c.relname ~ ('^' || parent || '_\d{6}$')
                        AND to_date(right(c.relname, 6), 'YYYYMM') < oldest LOOP
        EXECUTE format('DROP TABLE %I', partition);
    END LOOP;
    EXECUTE format('DELETE FROM %I WHERE stored_at < %L', parent || '_default', oldest || ' 00:00:00+00');
    DELETE FROM counter_cells WHERE starts_with(counter, parent) AND left(cell, 6) < to_char(oldest, 'YYYYMM');
    DELETE FROM counter_deltas WHERE starts_with(counter, parent) AND left(cell, 6) < to_char(oldest, 'YYYYMM');
END $$;

REVOKE ALL ON FUNCTION keep_month_partitions(text, integer, integer) FROM PUBLIC;

-- Old rows of one kind, as many as are asked for at once; never those of the last four weeks, and no messages of open
-- tickets.
CREATE FUNCTION purge_rows(kind text, before timestamptz, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    purged  bigint;
BEGIN
    before := LEAST(before, now() - interval '28 days');
    CASE kind
    WHEN 'messages' THEN
        WITH old AS (
            SELECT m.company_id, m.id FROM messages m
             WHERE m.created_at < before
               AND NOT EXISTS (SELECT FROM tickets t WHERE t.company_id = m.company_id AND t.id = m.ticket_id
                                                       AND t.status <> 'resolved')
             LIMIT most),
        reports AS (
            DELETE FROM message_events e USING old WHERE e.company_id = old.company_id AND e.message_id = old.id),
        gone AS (
            DELETE FROM messages m USING old WHERE m.company_id = old.company_id AND m.id = old.id RETURNING m.id)
        SELECT count(*) INTO purged FROM gone;
    WHEN 'timeline' THEN
        WITH old AS (
            SELECT company_id, id FROM timeline_entries WHERE created_at < before LIMIT most),
        gone AS (
            DELETE FROM timeline_entries t USING old WHERE t.company_id = old.company_id AND t.id = old.id
            RETURNING t.company_id, t.customer_id, t.category, t.is_counted),
        uncounted AS (
            INSERT INTO counter_deltas (company_id, counter, cell, delta)
            SELECT company_id, 'timeline', customer_id || ' ' || category, -count(*) FROM gone
             WHERE is_counted GROUP BY company_id, customer_id, category)
        SELECT count(*) INTO purged FROM gone;
    WHEN 'shipment_events' THEN
        WITH old AS (
            SELECT company_id, shipment_id, dedupe_key FROM shipment_events WHERE received_at < before LIMIT most),
        gone AS (
            DELETE FROM shipment_events e USING old
             WHERE e.company_id = old.company_id AND e.shipment_id = old.shipment_id AND e.dedupe_key = old.dedupe_key
            RETURNING e.company_id)
        SELECT count(*) INTO purged FROM gone;
    WHEN 'audit' THEN
        WITH old AS (SELECT id FROM audit_entries WHERE created_at < before ORDER BY id LIMIT most),
        gone AS (DELETE FROM audit_entries a USING old WHERE a.id = old.id RETURNING a.id)
        SELECT count(*) INTO purged FROM gone;
    WHEN 'notices' THEN
        WITH old AS (SELECT company_id, id FROM notices WHERE created_at < before LIMIT most),
        gone AS (DELETE FROM notices n USING old WHERE n.company_id = old.company_id AND n.id = old.id RETURNING n.id)
        SELECT count(*) INTO purged FROM gone;
    END CASE;
    RETURN purged;
END $$;

REVOKE ALL ON FUNCTION purge_rows(text, timestamptz, integer) FROM PUBLIC;

-- Where they are: a few pages each, because rows are stored in the order of time.
CREATE INDEX messages_age_idx ON messages USING brin (created_at);
CREATE INDEX timeline_entries_age_idx ON timeline_entries USING brin (created_at);
CREATE INDEX shipment_events_age_idx ON shipment_events USING brin (received_at);
CREATE INDEX notices_age_idx ON notices USING brin (created_at);
