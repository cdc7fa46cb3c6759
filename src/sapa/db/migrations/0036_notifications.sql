-- Customers are notified of chosen steps of their parcels. Off until a company turns it on.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


CREATE TABLE notification_settings (
    company_id  bigint         NOT NULL,
    enabled     boolean        NOT NULL DEFAULT false,
    rules       json           NOT NULL,
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT notification_settings_pkey PRIMARY KEY (company_id)
);

-- One for each step of a shipment, written with the change of its status. What is sending may have been sent, and is
-- never sent again.
CREATE TABLE shipment_notifications (
    company_id   bigint         NOT NULL,
    shipment_id  text           COLLATE "C" NOT NULL,
    step         text           COLLATE "C" NOT NULL,
    status       text           COLLATE "C" NOT NULL DEFAULT 'queued',
    reason       text,
    code         text           COLLATE "C",
    message_id   text           COLLATE "C",
    -- By company time.
    occurred_at  timestamptz(3) NOT NULL,
    due_at       timestamptz    DEFAULT now(),
    tries        smallint       NOT NULL DEFAULT 0,
    updated_at   timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT shipment_notifications_pkey PRIMARY KEY (company_id, shipment_id, step),
    CONSTRAINT shipment_notifications_status_check CHECK (
        status IN ('queued', 'sending', 'sent', 'skipped', 'failed', 'unknown')),
    CONSTRAINT shipment_notifications_due_check CHECK ((due_at IS NOT NULL) = (status IN ('queued', 'sending')))
);

CREATE INDEX shipment_notifications_due_idx ON shipment_notifications (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX shipment_notifications_company_due_idx ON shipment_notifications (company_id, due_at)
    WHERE due_at IS NOT NULL;
