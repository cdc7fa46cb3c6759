-- The web chat: its visitors, their sessions and what was said.

SET LOCAL lock_timeout = '5s';


CREATE TABLE widget_visitors (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    -- The site's own id of somebody signed in; proven by the site's server, so it is the same person on every device.
    external_id  text           COLLATE "C",
    name         text,
    -- Only where the site's server vouched for it.
    email        text,
    last_number  bigint         NOT NULL DEFAULT 0,
    created_at   timestamptz(3) NOT NULL DEFAULT now(),
    seen_at      timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT widget_visitors_pkey PRIMARY KEY (company_id, id)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX widget_visitors_external_key ON widget_visitors (company_id, external_id)
    WHERE external_id IS NOT NULL;
CREATE INDEX widget_visitors_silent_idx ON widget_visitors (seen_at) WHERE last_number = 0;

-- What a page keeps to be recognised by; here only its hash.
CREATE TABLE widget_sessions (
    company_id  bigint         NOT NULL,
    hash        bytea          NOT NULL,
    visitor_id  text           COLLATE "C" NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    used_at     timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT widget_sessions_pkey PRIMARY KEY (company_id, hash),
    CONSTRAINT widget_sessions_visitor_fkey FOREIGN KEY (company_id, visitor_id)
        REFERENCES widget_visitors (company_id, id) ON DELETE CASCADE
);

CREATE INDEX widget_sessions_visitor_idx ON widget_sessions (company_id, visitor_id);
CREATE INDEX widget_sessions_used_idx ON widget_sessions (used_at);

-- A conversation as the page shows it. Numbers are handed out under the visitor's lock, without gaps and in the order
-- of their commits, so that a page that has number 7 asks for what comes after 7 and misses nothing.
CREATE TABLE widget_lines (
    company_id    bigint         NOT NULL,
    visitor_id    text           COLLATE "C" NOT NULL,
    number        bigint         NOT NULL,
    -- Of a message out: messageId2. Of one in: what the page called it.
    reference     text           COLLATE "C" NOT NULL,
    direction     text           COLLATE "C" NOT NULL,
    content       json           NOT NULL,
    at            timestamptz(3) NOT NULL,
    delivered_at  timestamptz(3),
    read_at       timestamptz(3),
    CONSTRAINT widget_lines_pkey PRIMARY KEY (company_id, visitor_id, number),
    CONSTRAINT widget_lines_reference_key UNIQUE (company_id, visitor_id, reference),
    CONSTRAINT widget_lines_visitor_fkey FOREIGN KEY (company_id, visitor_id)
        REFERENCES widget_visitors (company_id, id) ON DELETE CASCADE,
    CONSTRAINT widget_lines_direction_check CHECK (direction IN ('in', 'out'))
) WITH (fillfactor = 80);

-- How much a visitor or an address did in the running minute. Unlogged: a crash of PostgreSQL forgets it.
CREATE UNLOGGED TABLE widget_windows (
    company_id    bigint      NOT NULL,
    subject       text        COLLATE "C" NOT NULL,
    window_start  timestamptz NOT NULL,
    used          integer     NOT NULL,
    CONSTRAINT widget_windows_pkey PRIMARY KEY (company_id, subject)
) WITH (fillfactor = 50);

CREATE INDEX widget_windows_start_idx ON widget_windows (window_start);
