-- Analytics: samples of what agents did, and what they add up to by day and by ticket.

SET LOCAL lock_timeout = '5s';


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
