-- Who writes to a company over its channels, what the channels called back with, the files that came along, and what
-- the simulators of channels were asked.

SET LOCAL lock_timeout = '5s';


CREATE TABLE contacts (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    -- Null as long as neither a phone number nor an e-mail address is known.
    customer_id  text           COLLATE "C",
    name         text,
    created_at   timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT contacts_pkey PRIMARY KEY (company_id, id)
);

CREATE INDEX contacts_customer_idx ON contacts (company_id, customer_id);

-- Whom the channels know a contact as. All spellings of one number have the same key.
CREATE TABLE contact_identities (
    company_id  bigint NOT NULL,
    kind        text   COLLATE "C" NOT NULL,
    key         text   COLLATE "C" NOT NULL,
    contact_id  text   COLLATE "C" NOT NULL,
    -- As they were met, the first one first.
    spellings   text[] NOT NULL,
    CONSTRAINT contact_identities_pkey PRIMARY KEY (company_id, kind, key)
);

CREATE INDEX contact_identities_contact_idx ON contact_identities (company_id, contact_id);

-- A contact's conversation over one connection. Instants are the company's.
CREATE TABLE message_threads (
    company_id       bigint         NOT NULL,
    connection_id    text           COLLATE "C" NOT NULL,
    contact_id       text           COLLATE "C" NOT NULL,
    last_inbound_at  timestamptz(3),
    -- How many messages went out since the contact last wrote.
    sent_since       integer        NOT NULL DEFAULT 0,
    last_message_id  text           COLLATE "C",
    CONSTRAINT message_threads_pkey PRIMARY KEY (company_id, connection_id, contact_id)
) WITH (fillfactor = 80);

-- What channels called back with, as it came. Those of one connection are dealt with in their order, by whoever has
-- locked its lane.
CREATE TABLE channel_lanes (
    company_id     bigint NOT NULL,
    connection_id  text   COLLATE "C" NOT NULL,
    source         text   COLLATE "C" NOT NULL,
    CONSTRAINT channel_lanes_pkey PRIMARY KEY (company_id, connection_id)
);

CREATE TABLE channel_callbacks (
    company_id     bigint         NOT NULL,
    id             bigint         GENERATED ALWAYS AS IDENTITY,
    connection_id  text           COLLATE "C" NOT NULL,
    hash           bytea          NOT NULL,
    headers        json           NOT NULL,
    body           bytea          NOT NULL,
    status         text           COLLATE "C" NOT NULL DEFAULT 'waiting',
    -- How many of its items are dealt with.
    position       integer        NOT NULL DEFAULT 0,
    error          text,
    tries          integer        NOT NULL DEFAULT 0,
    due_at         timestamptz    NOT NULL DEFAULT now(),
    received_at    timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT channel_callbacks_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT channel_callbacks_hash_key UNIQUE (company_id, connection_id, hash),
    CONSTRAINT channel_callbacks_status_check CHECK (status IN ('waiting', 'done', 'failed'))
);

CREATE INDEX channel_callbacks_waiting_idx ON channel_callbacks (company_id, connection_id, id)
    WHERE status = 'waiting';
CREATE INDEX channel_callbacks_received_idx ON channel_callbacks (company_id, received_at);

-- Files that came with messages: first where they can be had, then their bytes in parts.
CREATE TABLE message_media (
    company_id     bigint         NOT NULL,
    message_id     text           COLLATE "C" NOT NULL,
    number         integer        NOT NULL,
    connection_id  text           COLLATE "C" NOT NULL,
    source         text           COLLATE "C" NOT NULL,
    type           text           COLLATE "C" NOT NULL,
    mime_type      text,
    media_id       text,
    url            text,
    filename       text,
    status         text           COLLATE "C" NOT NULL DEFAULT 'waiting',
    size           bigint,
    error          text,
    tries          integer        NOT NULL DEFAULT 0,
    due_at         timestamptz    NOT NULL DEFAULT now(),
    created_at     timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT message_media_pkey PRIMARY KEY (company_id, message_id, number),
    CONSTRAINT message_media_status_check CHECK (status IN ('waiting', 'stored', 'failed'))
);

CREATE INDEX message_media_waiting_idx ON message_media (due_at) WHERE status = 'waiting';

CREATE TABLE message_media_parts (
    company_id  bigint  NOT NULL,
    message_id  text    COLLATE "C" NOT NULL,
    number      integer NOT NULL,
    part        integer NOT NULL,
    data        bytea   NOT NULL,
    CONSTRAINT message_media_parts_pkey PRIMARY KEY (company_id, message_id, number, part)
);

-- What the simulators of channels were asked, and how often of what they count.
CREATE TABLE sandbox_outbox (
    company_id  bigint         NOT NULL,
    id          bigint         GENERATED ALWAYS AS IDENTITY,
    source      text           COLLATE "C" NOT NULL,
    method      text           COLLATE "C" NOT NULL,
    path        text           NOT NULL,
    headers     json           NOT NULL,
    body        text           NOT NULL,
    status      integer        NOT NULL,
    answer      text           NOT NULL,
    asked_at    timestamptz(3) NOT NULL,
    CONSTRAINT sandbox_outbox_pkey PRIMARY KEY (company_id, id)
);

CREATE TABLE sandbox_counts (
    company_id  bigint  NOT NULL,
    name        text    COLLATE "C" NOT NULL,
    count       integer NOT NULL,
    CONSTRAINT sandbox_counts_pkey PRIMARY KEY (company_id, name)
);

CREATE TABLE sandbox_templates (
    company_id  bigint NOT NULL,
    source      text   COLLATE "C" NOT NULL,
    name        text   COLLATE "C" NOT NULL,
    language    text   COLLATE "C" NOT NULL,
    content     json   NOT NULL,
    CONSTRAINT sandbox_templates_pkey PRIMARY KEY (company_id, source, name, language)
);
