-- The console: people, what they may do in which company, their sessions, and a log of what they changed.

SET LOCAL lock_timeout = '5s';


CREATE TABLE users (
    id             bigint         GENERATED ALWAYS AS IDENTITY,
    email          text           NOT NULL,
    -- Case-folded by us, as customers' addresses are.
    email_key      text           COLLATE "C" NOT NULL,
    name           text           NOT NULL,
    -- Argon2id in its usual notation; null until one is chosen by a one-time link.
    password_hash  text,
    language       text           COLLATE "C" NOT NULL DEFAULT 'en',
    created_at     timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT users_pkey PRIMARY KEY (id),
    CONSTRAINT users_email_key UNIQUE (email_key),
    CONSTRAINT users_language_check CHECK (language IN ('en', 'id'))
);

CREATE TABLE memberships (
    organisation_id  bigint         NOT NULL,
    user_id          bigint         NOT NULL,
    role             text           COLLATE "C" NOT NULL,
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT memberships_pkey PRIMARY KEY (organisation_id, user_id),
    CONSTRAINT memberships_organisation_fkey FOREIGN KEY (organisation_id) REFERENCES organisations (id),
    CONSTRAINT memberships_user_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT memberships_role_check CHECK (role IN ('owner', 'developer', 'agent'))
);

CREATE INDEX memberships_user_idx ON memberships (user_id);

CREATE TABLE sessions (
    hash             bytea          NOT NULL,
    user_id          bigint         NOT NULL,
    organisation_id  bigint         NOT NULL,
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    expires_at       timestamptz(3) NOT NULL,
    address          text           NOT NULL,
    browser          text           NOT NULL,
    CONSTRAINT sessions_pkey PRIMARY KEY (hash),
    CONSTRAINT sessions_membership_fkey FOREIGN KEY (organisation_id, user_id)
        REFERENCES memberships (organisation_id, user_id) ON DELETE CASCADE
);

CREATE INDEX sessions_user_idx ON sessions (user_id);
CREATE INDEX sessions_expires_idx ON sessions (expires_at);

-- Set-up, invitations and forgotten passwords: whoever has the link may choose a password, once.
CREATE TABLE one_time_links (
    hash             bytea          NOT NULL,
    purpose          text           COLLATE "C" NOT NULL,
    organisation_id  bigint         NOT NULL,
    -- Null for the set-up of an organisation: its first owner says who they are.
    user_id          bigint,
    expires_at       timestamptz(3) NOT NULL,
    CONSTRAINT one_time_links_pkey PRIMARY KEY (hash),
    CONSTRAINT one_time_links_organisation_fkey FOREIGN KEY (organisation_id) REFERENCES organisations (id),
    CONSTRAINT one_time_links_user_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT one_time_links_purpose_check CHECK (purpose IN ('setup', 'invitation', 'reset'))
);

-- Failed attempts to sign in, by address and by account. Unlogged: a crash forgives them.
CREATE UNLOGGED TABLE sign_in_attempts (
    subject       text        COLLATE "C" NOT NULL,
    failures      integer     NOT NULL,
    window_start  timestamptz NOT NULL,
    CONSTRAINT sign_in_attempts_pkey PRIMARY KEY (subject)
);

-- Append-only. The user's name and address as they were, since people leave.
CREATE TABLE audit_entries (
    id               bigint         GENERATED ALWAYS AS IDENTITY,
    organisation_id  bigint         NOT NULL,
    environment      text           COLLATE "C",
    user_id          bigint,
    user_name        text           NOT NULL,
    action           text           COLLATE "C" NOT NULL,
    subject          text           NOT NULL,
    address          text           NOT NULL,
    created_at       timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT audit_entries_pkey PRIMARY KEY (id),
    CONSTRAINT audit_entries_organisation_fkey FOREIGN KEY (organisation_id) REFERENCES organisations (id)
);

CREATE INDEX audit_entries_organisation_idx ON audit_entries (organisation_id, id);
