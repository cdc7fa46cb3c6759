-- The log of API calls.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


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


CREATE OR REPLACE FUNCTION keep_day_partitions(parent text, days_ahead integer, days_kept integer) RETURNS void
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

SELECT keep_day_partitions('api_calls', 7, 30);
