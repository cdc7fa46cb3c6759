-- Support: agents, tickets and what happened to them.

SET LOCAL lock_timeout = '5s';


CREATE TABLE support_settings (
    company_id           bigint         NOT NULL,
    reopen_window_hours  integer        NOT NULL DEFAULT 24,
    auto_resolve_hours   integer        NOT NULL DEFAULT 72,
    reopen_assignee      text           COLLATE "C" NOT NULL DEFAULT 'previous',
    updated_at           timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT support_settings_pkey PRIMARY KEY (company_id),
    CONSTRAINT support_settings_hours_check CHECK (reopen_window_hours >= 0 AND auto_resolve_hours >= 0),
    CONSTRAINT support_settings_assignee_check CHECK (reopen_assignee IN ('previous', 'queue'))
);

CREATE TABLE agents (
    company_id       bigint         NOT NULL,
    id               bigint         GENERATED ALWAYS AS IDENTITY,
    name             text           NOT NULL,
    -- Folded: what a search looks through.
    name_text        text           COLLATE "C" NOT NULL,
    type             text           COLLATE "C" NOT NULL,
    active           boolean        NOT NULL DEFAULT true,
    -- The person of the console who is this agent.
    user_id          bigint,
    -- Whoever answers on the company's own telephone.
    is_business_app  boolean        NOT NULL DEFAULT false,
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    updated_at       timestamptz(3) NOT NULL DEFAULT now(),
    -- The counter's cell and the list's.
    cell             text           COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (type || CASE WHEN active THEN '/active' ELSE '/inactive' END) STORED,
    CONSTRAINT agents_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT agents_user_key UNIQUE (company_id, user_id),
    CONSTRAINT agents_type_check CHECK (type IN ('human', 'ai')),
    CONSTRAINT agents_user_check CHECK (user_id IS NULL OR type = 'human'),
    CONSTRAINT agents_business_app_check CHECK (type = 'human' OR NOT is_business_app)
);

CREATE UNIQUE INDEX agents_business_app_key ON agents (company_id) WHERE is_business_app;
CREATE INDEX agents_created_idx ON agents (company_id, created_at, id);
CREATE INDEX agents_cell_idx ON agents (company_id, cell, created_at, id);

-- Instants are the company's.
CREATE TABLE tickets (
    company_id        bigint         NOT NULL,
    id                text           COLLATE "C" NOT NULL,
    source            text           COLLATE "C" NOT NULL,
    connection_id     text           COLLATE "C" NOT NULL,
    contact_id        text           COLLATE "C" NOT NULL,
    customer_id       text           COLLATE "C",
    -- Whom the channel knows the customer as: where replies go.
    identity          text           COLLATE "C" NOT NULL,
    client_number     text           NOT NULL,
    connected_number  text           NOT NULL,
    status            text           COLLATE "C" NOT NULL,
    -- The owner; once it is resolved, the last one.
    agent_id          bigint,
    -- People have taken over: no AI agent may answer until the ticket is given to it again.
    ai_paused         boolean        NOT NULL DEFAULT false,
    -- From the customer's first message to the ticket's resolution; a reopened ticket begins another one.
    cycle             integer        NOT NULL DEFAULT 1,
    -- What the clock of the cycle has to remember.
    clock             json           NOT NULL DEFAULT '{}',
    waiting_since     timestamptz(3),
    -- The number of its newest event.
    number            integer        NOT NULL DEFAULT 0,
    last_message      text,
    last_message_at   timestamptz(3) NOT NULL,
    -- The last message or reopening.
    silent_since      timestamptz(3) NOT NULL,
    resolved_at       timestamptz(3),
    resolved_reason   text           COLLATE "C",
    created_at        timestamptz(3) NOT NULL,
    updated_at        timestamptz(3) NOT NULL,
    -- The counter's cell and the list's.
    cell              text           COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (status || '/' || source) STORED,
    CONSTRAINT tickets_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT tickets_status_check CHECK (CASE status
        WHEN 'open' THEN agent_id IS NULL
        WHEN 'assigned' THEN agent_id IS NOT NULL
        ELSE status = 'resolved' END),
    CONSTRAINT tickets_resolved_check CHECK ((status = 'resolved') = (resolved_at IS NOT NULL))
) WITH (fillfactor = 80);

-- One that is not resolved for each contact and connection.
CREATE UNIQUE INDEX tickets_active_key ON tickets (company_id, connection_id, contact_id) WHERE status <> 'resolved';

CREATE INDEX tickets_thread_idx ON tickets (company_id, contact_id, connection_id, resolved_at);
CREATE INDEX tickets_created_idx ON tickets (company_id, created_at, id);
CREATE INDEX tickets_cell_idx ON tickets (company_id, cell, created_at, id);
CREATE INDEX tickets_last_message_idx ON tickets (company_id, last_message_at, id);
CREATE INDEX tickets_cell_last_message_idx ON tickets (company_id, cell, last_message_at, id);
CREATE INDEX tickets_agent_idx ON tickets (company_id, agent_id, status, last_message_at, id)
    WHERE agent_id IS NOT NULL;
CREATE INDEX tickets_customer_idx ON tickets (company_id, customer_id, created_at, id) WHERE customer_id IS NOT NULL;

-- Those that silence may resolve: nobody waits for an answer.
CREATE INDEX tickets_silent_idx ON tickets (company_id, silent_since) WHERE status <> 'resolved' AND waiting_since IS NULL;

-- Append-only. Numbers are handed out under the ticket's lock, so they are in the order in which things happened to it:
-- all that is measured can be found again by going through them.
CREATE TABLE ticket_events (
    company_id  bigint         NOT NULL,
    ticket_id   text           COLLATE "C" NOT NULL,
    number      integer        NOT NULL,
    cycle       integer        NOT NULL,
    kind        text           COLLATE "C" NOT NULL,
    at          timestamptz(3) NOT NULL,
    -- Whose ticket it is from then on, or who wrote.
    agent_id    bigint,
    -- What that agent was then.
    agent_type  text           COLLATE "C",
    -- Who did it, where somebody said so.
    actor_id    bigint,
    actor_type  text           COLLATE "C",
    message_id  text           COLLATE "C",
    reason      text           COLLATE "C",
    CONSTRAINT ticket_events_pkey PRIMARY KEY (company_id, ticket_id, number),
    CONSTRAINT ticket_events_kind_check CHECK (kind IN (
        'opened', 'assigned', 'unassigned', 'handover', 'resolved', 'reopened', 'heard', 'said', 'announced'))
);

CREATE INDEX ticket_events_message_idx ON ticket_events (company_id, message_id) WHERE message_id IS NOT NULL;

CREATE TABLE ticket_notes (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    ticket_id   text           COLLATE "C" NOT NULL,
    agent_id    bigint         NOT NULL,
    body        text           NOT NULL,
    created_at  timestamptz(3) NOT NULL,
    CONSTRAINT ticket_notes_pkey PRIMARY KEY (company_id, id)
);

CREATE INDEX ticket_notes_ticket_idx ON ticket_notes (company_id, ticket_id, created_at, id);

ALTER TABLE messages ADD COLUMN ticket_id text COLLATE "C";

CREATE INDEX messages_ticket_idx ON messages (company_id, ticket_id, id) WHERE ticket_id IS NOT NULL;
