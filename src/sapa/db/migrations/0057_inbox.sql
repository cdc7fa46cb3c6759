-- The inbox: labels and teams, and what tickets are filed under.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


CREATE TABLE ticket_labels (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    name        text           NOT NULL,
    color       text           COLLATE "C" NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT ticket_labels_pkey PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX ticket_labels_name_key ON ticket_labels (company_id, lower(name));
CREATE INDEX ticket_labels_created_idx ON ticket_labels (company_id, created_at, id);

-- Agents are never deleted, so their ids stay valid.
CREATE TABLE teams (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    name        text           NOT NULL,
    agent_ids   bigint[]       NOT NULL,
    auto_assign boolean        NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT teams_pkey PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX teams_name_key ON teams (company_id, lower(name));
CREATE INDEX teams_created_idx ON teams (company_id, created_at, id);

CREATE TABLE saved_replies (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    shortcut    text           COLLATE "C" NOT NULL,
    text        text           NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT saved_replies_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT saved_replies_shortcut_key UNIQUE (company_id, shortcut)
);

CREATE INDEX saved_replies_created_idx ON saved_replies (company_id, created_at, id);

CREATE TABLE ticket_views (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    name        text           NOT NULL,
    -- Whose it is; null: everybody's.
    agent_id    bigint,
    filters     json           NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT ticket_views_pkey PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX ticket_views_name_key ON ticket_views (company_id, coalesce(agent_id, 0), lower(name));
CREATE INDEX ticket_views_created_idx ON ticket_views (company_id, created_at, id);

CREATE TABLE macros (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    name        text           NOT NULL,
    actions     json           NOT NULL,
    note        text,
    reply       text,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT macros_pkey PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX macros_name_key ON macros (company_id, lower(name));
CREATE INDEX macros_created_idx ON macros (company_id, created_at, id);

-- What agents have typed in the console and not sent.
CREATE TABLE reply_drafts (
    company_id  bigint         NOT NULL,
    ticket_id   text           COLLATE "C" NOT NULL,
    agent_id    bigint         NOT NULL,
    body        text           NOT NULL,
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT reply_drafts_pkey PRIMARY KEY (company_id, ticket_id, agent_id)
);

-- One for each company; without one it is always open.
CREATE TABLE business_hours (
    company_id  bigint         NOT NULL,
    time_zone   text           COLLATE "C" NOT NULL,
    weekly      json           NOT NULL,
    holidays    json           NOT NULL,
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT business_hours_pkey PRIMARY KEY (company_id)
);

-- Empty conditions match everything.
CREATE TABLE sla_policies (
    company_id              bigint         NOT NULL,
    id                      text           COLLATE "C" NOT NULL,
    name                    text           NOT NULL,
    position                integer        NOT NULL,
    priorities              text[]         COLLATE "C" NOT NULL,
    sources                 text[]         COLLATE "C" NOT NULL,
    label_ids               text[]         COLLATE "C" NOT NULL,
    first_response_minutes  integer,
    resolution_minutes      integer,
    in_business_hours       boolean        NOT NULL,
    created_at              timestamptz(3) NOT NULL DEFAULT now(),
    updated_at              timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT sla_policies_pkey PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX sla_policies_name_key ON sla_policies (company_id, lower(name));
CREATE INDEX sla_policies_created_idx ON sla_policies (company_id, created_at, id);

-- Agents who are there, in real time; without a row an agent is offline.
CREATE TABLE agent_presences (
    company_id  bigint         NOT NULL,
    agent_id    bigint         NOT NULL,
    status      text           COLLATE "C" NOT NULL,
    until       timestamptz(3) NOT NULL,
    CONSTRAINT agent_presences_pkey PRIMARY KEY (company_id, agent_id),
    CONSTRAINT agent_presences_status_check CHECK (status IN ('online', 'away'))
);

-- A cycle of a ticket is asked about once.
CREATE TABLE ratings (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    ticket_id    text           COLLATE "C" NOT NULL,
    cycle        integer        NOT NULL,
    agent_id     bigint,
    customer_id  text           COLLATE "C",
    source       text           COLLATE "C" NOT NULL,
    -- Who has it may answer; it cannot be guessed.
    token        text           COLLATE "C" NOT NULL,
    status       text           COLLATE "C" NOT NULL DEFAULT 'queued',
    tries        integer        NOT NULL DEFAULT 0,
    due_at       timestamptz(3) NOT NULL DEFAULT now(),
    score        smallint,
    comment      text,
    created_at   timestamptz(3) NOT NULL,
    rated_at     timestamptz(3),
    CONSTRAINT ratings_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT ratings_ticket_key UNIQUE (company_id, ticket_id, cycle),
    CONSTRAINT ratings_token_key UNIQUE (company_id, token),
    CONSTRAINT ratings_status_check CHECK (status IN ('queued', 'asked', 'failed', 'rated')),
    CONSTRAINT ratings_score_check CHECK ((status = 'rated') = (score IS NOT NULL) AND score BETWEEN 1 AND 5)
);

CREATE INDEX ratings_created_idx ON ratings (company_id, created_at, id);
CREATE INDEX ratings_agent_idx ON ratings (company_id, agent_id, created_at, id);
CREATE INDEX ratings_due_idx ON ratings (due_at) WHERE status = 'queued';

ALTER TABLE tickets
    ADD COLUMN label_ids      text[]         COLLATE "C" NOT NULL DEFAULT '{}',
    ADD COLUMN priority       text           COLLATE "C" NOT NULL DEFAULT 'normal',
    ADD COLUMN team_id        text           COLLATE "C",
    ADD COLUMN snoozed_until  timestamptz(3),
    ADD COLUMN sla            json,
    ADD COLUMN sla_due_at     timestamptz(3),
    ADD COLUMN rating         smallint;

ALTER TABLE support_settings 
    ADD COLUMN ask_rating   boolean NOT NULL DEFAULT false,
    ADD COLUMN auto_assign  boolean NOT NULL DEFAULT false;

ALTER TABLE tickets
    ADD CONSTRAINT tickets_priority_check CHECK (priority IN ('low', 'normal', 'high', 'urgent')) NOT VALID,
    ADD CONSTRAINT tickets_snoozed_check CHECK (snoozed_until IS NULL OR status <> 'resolved') NOT VALID;

ALTER TABLE ticket_events DROP CONSTRAINT ticket_events_kind_check;
ALTER TABLE ticket_events ADD CONSTRAINT ticket_events_kind_check CHECK (kind IN (
    'opened', 'assigned', 'unassigned', 'handover', 'resolved', 'reopened', 'heard', 'said', 'announced',
    'labels', 'priority', 'team', 'snoozed', 'woken')) NOT VALID;
