-- Messages have a price: what the channel reports, and what it costs by imported rates. Accounts have the channel's rating,
-- limits and warnings.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


-- As the channel reported it, with the cost once it is fixed.
ALTER TABLE messages ADD COLUMN pricing json;

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

-- What the simulators of channels report about their accounts.
CREATE TABLE sandbox_channel_states (
    company_id       bigint  NOT NULL,
    source           text    COLLATE "C" NOT NULL,
    quality          text    COLLATE "C" NOT NULL,
    messaging_limit  integer NOT NULL,
    throughput       text    COLLATE "C" NOT NULL,
    CONSTRAINT sandbox_channel_states_pkey PRIMARY KEY (company_id, source)
);
