-- Carriers: each company's accounts with them, what was asked of them, and what their simulators remember.

SET LOCAL lock_timeout = '5s';


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
    CONSTRAINT carrier_connections_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT carrier_connections_provider_key UNIQUE (company_id, provider),
    CONSTRAINT carrier_connections_status_check CHECK (status IN ('connected', 'invalid'))
);

CREATE INDEX carrier_connections_hook_idx ON carrier_connections (hook_hash);

-- Append-only. Written before a booking's outcome is, so that an answer of a carrier is never lost with a transaction.
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
