-- Replies that agents send later.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

CREATE TABLE scheduled_replies (
    company_id      bigint         NOT NULL,
    id              text           COLLATE "C" NOT NULL,
    ticket_id       text           COLLATE "C" NOT NULL,
    agent_id        bigint         NOT NULL,
    body            text           NOT NULL,
    send_at         timestamptz(3) NOT NULL,
    status          text           COLLATE "C" NOT NULL DEFAULT 'scheduled',
    failure_reason  text,
    tries           integer        NOT NULL DEFAULT 0,
    due_at          timestamptz(3),
    created_at      timestamptz(3) NOT NULL,
    CONSTRAINT scheduled_replies_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT scheduled_replies_status_check CHECK (status IN ('scheduled', 'sending', 'failed')),
    CONSTRAINT scheduled_replies_failure_check CHECK ((status = 'failed') = (failure_reason IS NOT NULL)),
    CONSTRAINT scheduled_replies_due_check CHECK ((status = 'failed') = (due_at IS NULL))
);

CREATE INDEX scheduled_replies_ticket_idx ON scheduled_replies (company_id, ticket_id, send_at, id);
CREATE INDEX scheduled_replies_due_idx ON scheduled_replies (due_at) WHERE due_at IS NOT NULL;
