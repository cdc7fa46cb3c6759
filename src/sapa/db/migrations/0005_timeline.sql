-- The customer timeline: what happened to a customer, written with its cause.

SET LOCAL lock_timeout = '5s';


CREATE TABLE timeline_entries (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    customer_id  text           COLLATE "C" NOT NULL,
    category     text           COLLATE "C" NOT NULL,
    type         text           COLLATE "C" NOT NULL,
    source       text           NOT NULL,
    edit_log     text,
    notes        text,
    created_at   timestamptz(3) NOT NULL,
    updated_at   timestamptz(3) NOT NULL,
    CONSTRAINT timeline_entries_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT timeline_entries_category_check CHECK (category IN ('support', 'loyalty', 'system'))
);

CREATE INDEX timeline_entries_customer_idx ON timeline_entries (company_id, customer_id, created_at, id);
CREATE INDEX timeline_entries_category_idx ON timeline_entries (company_id, customer_id, category, created_at, id);
