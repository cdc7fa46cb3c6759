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
    CONSTRAINT companies_pkey PRIMARY KEY (company_id),
    CONSTRAINT companies_organisation_fkey FOREIGN KEY (organisation_id) REFERENCES organisations (id),
    CONSTRAINT companies_environment_key UNIQUE (organisation_id, environment),
    CONSTRAINT companies_environment_check CHECK (environment IN ('live', 'test')),
    CONSTRAINT companies_clock_check CHECK (
        clock_offset BETWEEN '0' AND interval '10 years' AND (environment = 'test' OR clock_offset = '0'))
);

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

CREATE TABLE counter_deltas (
    company_id  bigint      NOT NULL,
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    counter     text        COLLATE "C" NOT NULL,
    cell        text        COLLATE "C" NOT NULL,
    delta       integer     NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT counter_deltas_pkey PRIMARY KEY (company_id, counter, id)
);


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
    -- Case-folded name, e-mail and the digits of the phone, a line each: what a search looks through.
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
    CONSTRAINT products_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT products_status_check CHECK (status IN ('active', 'draft', 'archived'))
);

CREATE UNIQUE INDEX products_product_id_key ON products (company_id, product_id);
CREATE INDEX products_created_idx ON products (company_id, created_at, id);
CREATE INDEX products_status_idx ON products (company_id, status, created_at, id);
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
    CONSTRAINT orders_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT orders_status_check CHECK (status IN ('active', 'archived', 'cancelled', 'refunded')),
    CONSTRAINT orders_fulfillment_status_check CHECK (fulfillment_status IN ('unfulfilled', 'fulfilled')),
    CONSTRAINT orders_financial_status_check CHECK (financial_status IN ('pending', 'paid', 'refunded')),
    CONSTRAINT orders_archived_from_check CHECK ((status = 'archived') = (archived_from IS NOT NULL)),
    CONSTRAINT orders_total_check CHECK (total >= 0 AND scale(total) = min_scale(total))
);

CREATE UNIQUE INDEX orders_order_id_key ON orders (company_id, order_id);
CREATE UNIQUE INDEX orders_order_number_key ON orders (company_id, order_number);
CREATE INDEX orders_created_idx ON orders (company_id, created_at, id);
CREATE INDEX orders_cell_idx ON orders (company_id, cell, created_at, id);
CREATE INDEX orders_customer_idx ON orders (company_id, customer_id, created_at, id);
CREATE INDEX orders_search_idx ON orders USING gin (company_id, customer_text gin_trgm_ops);


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
    CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT webhook_endpoints_status_check CHECK (status IN ('active', 'paused', 'suspended')),
    CONSTRAINT webhook_endpoints_catch_up_check CHECK (catch_up IN ('all', 'latest', 'skip'))
);

CREATE INDEX webhook_endpoints_catch_up_idx ON webhook_endpoints (company_id) WHERE catch_up IS NOT NULL;

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
    CONSTRAINT notices_pkey PRIMARY KEY (company_id, id)
);


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
    CONSTRAINT timeline_entries_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT timeline_entries_category_check CHECK (category IN ('support', 'loyalty', 'system'))
);

CREATE INDEX timeline_entries_customer_idx ON timeline_entries (company_id, customer_id, created_at, id);
CREATE INDEX timeline_entries_category_idx ON timeline_entries (company_id, customer_id, category, created_at, id);


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
    CONSTRAINT loyalty_settings_pkey PRIMARY KEY (company_id),
    CONSTRAINT loyalty_settings_earn_on_check CHECK (earn_on IN ('paid', 'fulfilled', 'created')),
    CONSTRAINT loyalty_settings_rounding_check CHECK (rounding IN ('floor', 'round', 'ceil'))
);

CREATE TABLE loyalty_tiers (
    company_id       bigint  NOT NULL,
    currency_amount  numeric NOT NULL,
    points           bigint  NOT NULL,
    CONSTRAINT loyalty_tiers_pkey PRIMARY KEY (company_id, currency_amount),
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
    CONSTRAINT loyalty_order_positions_pkey PRIMARY KEY (company_id, order_id),
    CONSTRAINT loyalty_order_positions_check CHECK (
        worth > 0 AND target BETWEEN 0 AND worth AND shortfall >= 0 AND posted = target + shortfall)
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
    instant := CASE parent WHEN 'events' THEN 'created_at' WHEN 'webhook_attempts' THEN 'started_at' END;
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
