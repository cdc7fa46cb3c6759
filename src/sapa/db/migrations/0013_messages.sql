-- Messages, what became of them, their templates, and the records of the calls that asked for them.

SET LOCAL lock_timeout = '5s';


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
    CONSTRAINT messages_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT messages_direction_check CHECK (direction IN ('in', 'out')),
    CONSTRAINT messages_status_check CHECK (CASE direction
        WHEN 'in' THEN status = 'received'
        ELSE status IN ('pending', 'sent', 'delivered', 'read', 'failed') END)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX messages_provider_key ON messages (company_id, source, provider_id);

-- What went to a customer over a channel: what a watermark speaks of, and what an answer may be to.
CREATE INDEX messages_identity_idx ON messages (company_id, source, identity, created_at) WHERE direction = 'out';

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
    CONSTRAINT message_templates_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT message_templates_name_key UNIQUE (company_id, name, language),
    CONSTRAINT message_templates_source_check CHECK (source IN ('CRM', 'AUTH')),
    CONSTRAINT message_templates_category_check CHECK (category IN ('UTILITY', 'MARKETING', 'AUTHENTICATION')),
    CONSTRAINT message_templates_status_check CHECK (
        status IN ('PENDING', 'APPROVED', 'REJECTED', 'PAUSED', 'DISABLED'))
);

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

SELECT keep_month_partitions('api_requests', 2, 12);
