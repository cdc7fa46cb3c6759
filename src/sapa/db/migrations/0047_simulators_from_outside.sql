-- Simulators can be called from outside: the addresses that programs subscribed for callbacks, the callbacks that wait to be
-- posted there, when simulated people last wrote, and the pace at which they are written to.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


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
