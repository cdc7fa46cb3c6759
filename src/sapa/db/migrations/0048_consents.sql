-- Consent to marketing messages: by customer, and by the number, address or id that a person uses on a channel.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


-- The consent in force. The subject is a customer (kind 'customer') or an identity as contact_identities has it; the app
-- is CRM for all channels, or one channel. What customers subscribe to stands in their row, and here who said so.
CREATE TABLE consents (
    company_id    bigint         NOT NULL,
    kind          text           COLLATE "C" NOT NULL,
    key           text           COLLATE "C" NOT NULL,
    app           text           COLLATE "C" NOT NULL,
    status        text           COLLATE "C" NOT NULL,
    is_by_person  boolean        NOT NULL,
    -- By company time; when the person said it, as far as known.
    obtained_at   timestamptz(3) NOT NULL,
    record_id     text           COLLATE "C" NOT NULL,
    CONSTRAINT consents_pkey PRIMARY KEY (company_id, kind, key, app),
    CONSTRAINT consents_status_check CHECK (status IN ('subscribe', 'unsubscribe'))
) WITH (fillfactor = 80);

-- Every decision, with what proves it.
CREATE TABLE consent_records (
    company_id    bigint         NOT NULL,
    id            text           COLLATE "C" NOT NULL,
    kind          text           COLLATE "C" NOT NULL,
    key           text           COLLATE "C" NOT NULL,
    app           text           COLLATE "C" NOT NULL,
    -- The identity as it was written; null for a customer.
    identity      text,
    status        text           COLLATE "C" NOT NULL,
    source        text           COLLATE "C" NOT NULL,
    is_by_person  boolean        NOT NULL,
    proof         json           NOT NULL,
    -- Null for the person.
    actor         json,
    obtained_at   timestamptz(3) NOT NULL,
    created_at    timestamptz(3) NOT NULL,
    CONSTRAINT consent_records_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT consent_records_status_check CHECK (status IN ('subscribe', 'unsubscribe')),
    CONSTRAINT consent_records_source_check CHECK (
        source IN ('api', 'console', 'import', 'system', 'word', 'link', 'one_click', 'channel_preference',
                   'channel_refusal')),
    CONSTRAINT consent_records_actor_check CHECK ((actor IS NULL) = is_by_person),
    CONSTRAINT consent_records_identity_check CHECK ((identity IS NULL) = (kind = 'customer'))
);

CREATE INDEX consent_records_subject_idx ON consent_records (company_id, kind, key, created_at);

CREATE TABLE consent_settings (
    company_id           bigint         NOT NULL,
    stop_words           text[]         NOT NULL,
    start_words          text[]         NOT NULL,
    stop_reply           text,
    start_reply          text,
    automatic_marketing  text           COLLATE "C" NOT NULL,
    updated_at           timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT consent_settings_pkey PRIMARY KEY (company_id),
    CONSTRAINT consent_settings_marketing_check CHECK (automatic_marketing IN ('subscribed', 'not_refused'))
);

-- One for each address that got a marketing message with a link.
CREATE TABLE unsubscribe_links (
    company_id  bigint         NOT NULL,
    kind        text           COLLATE "C" NOT NULL,
    key         text           COLLATE "C" NOT NULL,
    token       text           COLLATE "C" NOT NULL,
    identity    text           NOT NULL,
    source      text           COLLATE "C" NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT unsubscribe_links_pkey PRIMARY KEY (company_id, kind, key)
);

CREATE UNIQUE INDEX unsubscribe_links_token_key ON unsubscribe_links (company_id, token);

-- A queue: one for each choice by word, written with it and deleted once it is sent. What is sending may have been sent,
-- and is never sent again.
CREATE TABLE consent_confirmations (
    company_id     bigint         NOT NULL,
    message_id     text           COLLATE "C" NOT NULL,
    connection_id  text           COLLATE "C" NOT NULL,
    source         text           COLLATE "C" NOT NULL,
    identity       text           NOT NULL,
    status         text           COLLATE "C" NOT NULL,
    state          text           COLLATE "C" NOT NULL DEFAULT 'queued',
    due_at         timestamptz    NOT NULL DEFAULT now(),
    tries          smallint       NOT NULL DEFAULT 0,
    CONSTRAINT consent_confirmations_pkey PRIMARY KEY (company_id, message_id),
    CONSTRAINT consent_confirmations_status_check CHECK (status IN ('subscribe', 'unsubscribe')),
    CONSTRAINT consent_confirmations_state_check CHECK (state IN ('queued', 'sending'))
);

CREATE INDEX consent_confirmations_due_idx ON consent_confirmations (due_at);
