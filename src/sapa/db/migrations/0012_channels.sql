-- Channels: each company's accounts with them, and the pace at which they are sent to.

SET LOCAL lock_timeout = '5s';


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
    CONSTRAINT channel_connections_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT channel_connections_account_key UNIQUE (company_id, source, account_id),
    CONSTRAINT channel_connections_status_check CHECK (status IN ('connected', 'disconnected')),
    CONSTRAINT channel_connections_secrets_check
        CHECK ((status = 'connected') = (credentials IS NOT NULL AND hook_hash IS NOT NULL))
);

-- One connection of a kind at a time.
CREATE UNIQUE INDEX channel_connections_source_key ON channel_connections (company_id, source)
    WHERE status = 'connected';

CREATE INDEX channel_connections_renew_idx ON channel_connections (renew_at) WHERE status = 'connected';

-- When each connection may send again. Unlogged: after a crash of PostgreSQL the first sends do not wait.
CREATE UNLOGGED TABLE channel_paces (
    company_id     bigint      NOT NULL,
    connection_id  text        COLLATE "C" NOT NULL,
    free_at        timestamptz NOT NULL,
    CONSTRAINT channel_paces_pkey PRIMARY KEY (company_id, connection_id)
) WITH (fillfactor = 50);
