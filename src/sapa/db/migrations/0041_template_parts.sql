-- Templates have all parts that a channel knows: named parameters, cards, offers, one-time codes. They follow the
-- channel's rating, and say why they cannot be sent.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE message_templates
    ADD COLUMN parameter_format    text    COLLATE "C" NOT NULL DEFAULT 'POSITIONAL',
    ADD COLUMN cards               json    NOT NULL DEFAULT '[]',
    ADD COLUMN limited_time_offer  json,
    ADD COLUMN ttl_seconds         integer,
    ADD COLUMN authentication      json,
    ADD COLUMN examples            json,
    ADD COLUMN quality             text    COLLATE "C",
    ADD COLUMN not_sendable_reason text,
    -- The account that has it, such as a WhatsApp business account.
    ADD COLUMN owner_id            text    COLLATE "C",
    ADD CONSTRAINT message_templates_format_check CHECK (parameter_format IN ('POSITIONAL', 'NAMED')),
    ADD CONSTRAINT message_templates_quality_check CHECK (quality IN ('GREEN', 'YELLOW', 'RED'));

CREATE INDEX message_templates_unsubmitted_idx ON message_templates (company_id) WHERE provider_id IS NULL;

-- A deferred message with a one-time code is stored sealed.
ALTER TABLE deferred_messages ADD COLUMN is_sealed boolean NOT NULL DEFAULT false;

-- The simulator reviews templates, and rejects some.

ALTER TABLE sandbox_templates
    ADD COLUMN status text COLLATE "C" NOT NULL DEFAULT 'APPROVED',
    ADD COLUMN reason text;
