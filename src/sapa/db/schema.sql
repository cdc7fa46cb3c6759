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

-- The product may not create or drop tables; this is the one thing of that kind it may ask for, within bounds.
-- Each partition covers one day in UTC. Rows that missed their partition wait in the default one.
CREATE FUNCTION keep_event_partitions(days_ahead integer, days_kept integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    today      date := (now() AT TIME ZONE 'UTC')::date;
    day        date;
    partition  text;
BEGIN
    days_ahead := LEAST(days_ahead, 60);
    days_kept := GREATEST(days_kept, 30);
    FOR day IN SELECT today + n FROM generate_series(0, days_ahead) n LOOP
        partition := 'events_' || to_char(day, 'YYYYMMDD');
        CONTINUE WHEN to_regclass(partition) IS NOT NULL;
        BEGIN
            EXECUTE format('CREATE TABLE %I PARTITION OF events FOR VALUES FROM (%L) TO (%L)', partition,
                           day || ' 00:00:00+00', (day + 1) || ' 00:00:00+00');
        EXCEPTION WHEN duplicate_table OR check_violation THEN
            NULL;  -- another caller made it, or the default partition holds rows of that day: they stay there
        END;
    END LOOP;
    FOR partition IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                      WHERE i.inhparent = 'events'::regclass
                        AND c.relname ~ '^events_\d{8}$'
                        AND to_date(right(c.relname, 8), 'YYYYMMDD') < today - days_kept LOOP
        EXECUTE format('DROP TABLE %I', partition);
    END LOOP;
    DELETE FROM events_default WHERE created_at < now() - make_interval(days => days_kept);
END $$;

REVOKE ALL ON FUNCTION keep_event_partitions(integer, integer) FROM PUBLIC;


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
