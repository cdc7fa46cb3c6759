-- Messages have what customers send besides text: carts, answers of flows, places, contacts, shares. Edits, deletions and
-- reactions are part of the message. What channels report besides messages is stored, too.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE messages
    -- What it has besides text, by the names of the API.
    ADD COLUMN parts      json,
    ADD COLUMN reactions  json,
    ADD COLUMN edited_at  timestamptz(3),
    ADD COLUMN revoked_at timestamptz(3);

-- Whether a cart that a customer sends becomes an order.
ALTER TABLE companies ADD COLUMN cart_orders boolean NOT NULL DEFAULT false;


CREATE TABLE channel_events (
    company_id     bigint         NOT NULL,
    id             text           COLLATE "C" NOT NULL,
    connection_id  text           COLLATE "C" NOT NULL,
    source         text           COLLATE "C" NOT NULL,
    kind           text           COLLATE "C" NOT NULL,
    -- The channel's word for it.
    name           text           NOT NULL,
    -- The same for each repetition of a report.
    key            text           COLLATE "C" NOT NULL,
    -- Of an edit, a deletion or a reaction: the channel's id of its message, which has not arrived.
    message_id     text           COLLATE "C",
    contact_id     text           COLLATE "C",
    customer_id    text           COLLATE "C",
    client_number  text,
    data           json           NOT NULL,
    -- By company time.
    occurred_at    timestamptz(3) NOT NULL,
    created_at     timestamptz(3) NOT NULL DEFAULT now(),
    -- The counter's cell and the list's.
    cell           text           COLLATE "C" NOT NULL GENERATED ALWAYS AS (source || '/' || kind) STORED,
    CONSTRAINT channel_events_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT channel_events_key_key UNIQUE (company_id, connection_id, key),
    CONSTRAINT channel_events_kind_check CHECK (
        kind IN ('preference', 'referral', 'system', 'error', 'edit', 'revoke', 'reaction', 'unknown'))
);

CREATE INDEX channel_events_created_idx ON channel_events (company_id, created_at, id);
CREATE INDEX channel_events_cell_idx ON channel_events (company_id, cell, created_at, id);
CREATE INDEX channel_events_connection_idx ON channel_events (company_id, connection_id, id);
CREATE INDEX channel_events_contact_idx ON channel_events (company_id, contact_id) WHERE contact_id IS NOT NULL;
CREATE INDEX channel_events_message_idx ON channel_events (company_id, source, message_id) WHERE message_id IS NOT NULL;
