-- Suspended webhook endpoints are probed and resume by themselves. Owners are told of a suspension by mail.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE webhook_endpoints
    ADD COLUMN auto_resume   boolean        NOT NULL DEFAULT true,
    ADD COLUMN suspended_at  timestamptz(3),
    ADD COLUMN probes        smallint       NOT NULL DEFAULT 0,
    ADD COLUMN next_probe_at timestamptz(3);

CREATE INDEX webhook_endpoints_probe_idx ON webhook_endpoints (company_id) WHERE next_probe_at IS NOT NULL;

UPDATE webhook_endpoints
   SET suspended_at = updated_at
 WHERE status = 'suspended';

-- An endpoint that has been suspended for longer stays so until it is resumed: its events may be out of date.
UPDATE webhook_endpoints AS e
   SET next_probe_at = now() + c.clock_offset
  FROM companies AS c
 WHERE c.company_id = e.company_id AND e.status = 'suspended' AND e.missed_since > now() - interval '3 days';

ALTER TABLE webhook_attempts ADD COLUMN is_probe boolean NOT NULL DEFAULT false;

ALTER TABLE notices
    ADD COLUMN mail_due_at timestamptz,
    ADD COLUMN mail_tries  smallint    NOT NULL DEFAULT 0;

CREATE INDEX notices_mail_idx ON notices (company_id) WHERE mail_due_at IS NOT NULL;
