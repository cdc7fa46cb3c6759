-- Whom notes mention, until they open the ticket.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

CREATE TABLE ticket_mentions (
    company_id  bigint         NOT NULL,
    agent_id    bigint         NOT NULL,
    ticket_id   text           COLLATE "C" NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT ticket_mentions_pkey PRIMARY KEY (company_id, agent_id, ticket_id)
);
