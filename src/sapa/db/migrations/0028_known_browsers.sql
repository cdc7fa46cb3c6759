-- Browsers in which a person has signed in are known, and the deliveries that wait are counted.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


-- From these browsers a person signs in even while strangers guess the password.
CREATE TABLE known_browsers (
    hash     bytea          NOT NULL,
    user_id  bigint         NOT NULL,
    used_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT known_browsers_pkey PRIMARY KEY (hash, user_id),
    CONSTRAINT known_browsers_user_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE INDEX known_browsers_user_idx ON known_browsers (user_id, used_at);
CREATE INDEX known_browsers_used_idx ON known_browsers (used_at);


-- Code before this migration does not count; the worker corrects the counter every hour.
CREATE INDEX counter_cells_webhook_queue_idx ON counter_cells (company_id) WHERE counter = 'webhook_queue';

INSERT INTO counter_cells (company_id, counter, cell, total)
SELECT company_id, 'webhook_queue', '', count(*) FROM webhook_queue GROUP BY company_id;
