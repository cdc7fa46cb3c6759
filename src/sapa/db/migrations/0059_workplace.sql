-- The console as a workplace: a person's saved filters and alerts, when they were last there, and who changed a customer.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


CREATE TABLE saved_filters (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    user_id     bigint         NOT NULL,
    list        text           COLLATE "C" NOT NULL,
    name        text           NOT NULL,
    query       text           NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT saved_filters_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT saved_filters_name_key UNIQUE (company_id, user_id, list, name)
);

ALTER TABLE timeline_entries ADD COLUMN actor_name text;

-- What a person wants to hear of in this company; null: the defaults.
ALTER TABLE memberships ADD COLUMN alerts json;
-- When they were last mailed about what waits.
ALTER TABLE memberships ADD COLUMN alerted_at timestamptz(3);

ALTER TABLE sessions ADD COLUMN seen_at timestamptz(3);
