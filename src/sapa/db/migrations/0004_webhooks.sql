-- Webhooks: endpoints, the queue of deliveries, the history of attempts.

SET LOCAL lock_timeout = '5s';


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

-- Directory: who may listen to a company's events from a developer's machine.
CREATE TABLE developer_tokens (
    hash        bytea          NOT NULL,
    company_id  bigint         NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    expires_at  timestamptz(3) NOT NULL,
    CONSTRAINT developer_tokens_pkey PRIMARY KEY (hash),
    CONSTRAINT developer_tokens_company_fkey FOREIGN KEY (company_id) REFERENCES companies (company_id)
);

DROP FUNCTION keep_event_partitions(integer, integer);

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

SELECT keep_day_partitions('webhook_attempts', 7, 30);
