-- Callbacks of channels are parsed outside of a transaction: whoever does it holds a lease on the connection's lane.
-- runs with code since: 0023

SET LOCAL lock_timeout = '5s';

ALTER TABLE channel_lanes
    ADD COLUMN holder text COLLATE "C",
    ADD COLUMN leased_until timestamptz;

-- How often a callback waited for a message that it refers to. `tries` counts what was started.
ALTER TABLE channel_callbacks ADD COLUMN postponements integer NOT NULL DEFAULT 0;

CREATE INDEX channel_callbacks_failed_idx ON channel_callbacks (company_id, connection_id, id)
    WHERE status = 'failed';

-- Of a received mail: what the receiving server found out about its sender.
ALTER TABLE messages ADD COLUMN authentication json;

-- Messages that their channel refused for the moment, and when they are sent again. The row goes with the outcome.
CREATE TABLE deferred_messages (
    company_id     bigint         NOT NULL,
    message_id     text           COLLATE "C" NOT NULL,
    connection_id  text           COLLATE "C" NOT NULL,
    outgoing       bytea          NOT NULL,
    tries          integer        NOT NULL DEFAULT 1,
    -- The company's time.
    deferred_at    timestamptz(3) NOT NULL,
    due_at         timestamptz(3) NOT NULL,
    -- While a worker sends it. If the worker dies meanwhile, the outcome is unknown.
    claimed_at     timestamptz,
    CONSTRAINT deferred_messages_pkey PRIMARY KEY (company_id, message_id)
);

CREATE INDEX deferred_messages_due_idx ON deferred_messages (due_at);
