-- The test environment: what the simulators of channels and carriers will call back with, and when.

SET LOCAL lock_timeout = '5s';


CREATE TABLE sandbox_callbacks (
    company_id  bigint      NOT NULL,
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    -- In the company's time, so that a clock moved forward brings them on.
    due_at      timestamptz NOT NULL,
    path        text        NOT NULL,
    headers     json        NOT NULL,
    body        bytea       NOT NULL,
    tries       integer     NOT NULL DEFAULT 0,
    CONSTRAINT sandbox_callbacks_pkey PRIMARY KEY (company_id, id)
);

CREATE INDEX sandbox_callbacks_due_idx ON sandbox_callbacks (company_id, due_at, id);
