-- Shipments collect cash on delivery. Carriers' statements are reconciled with them, and every difference is listed.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE shipments
    ADD COLUMN cod_amount          numeric,
    ADD COLUMN cod_fee             numeric,
    ADD COLUMN cod_collected_at    timestamptz(3),
    ADD COLUMN cod_remitted_at     timestamptz(3),
    ADD COLUMN cod_remitted_amount numeric,
    ADD COLUMN carrier_fee         numeric,
    ADD COLUMN payment_qr          text,
    -- Not valid: existing rows are checked by a later migration, while shipments change.
    ADD CONSTRAINT shipments_cod_check CHECK (
        cod_amount > 0 AND (cod_remitted_at IS NULL) = (cod_remitted_amount IS NULL)) NOT VALID;

CREATE TABLE settlements (
    company_id       bigint         NOT NULL,
    id               text           COLLATE "C" NOT NULL,
    provider         text           COLLATE "C" NOT NULL,
    reference        text           COLLATE "C" NOT NULL,
    remitted_at      timestamptz(3) NOT NULL,
    currency         text           COLLATE "C" NOT NULL,
    parcels          integer        NOT NULL,
    differing        integer        NOT NULL,
    expected_amount  numeric        NOT NULL,
    remitted_amount  numeric        NOT NULL,
    fingerprint      bytea          NOT NULL,
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT settlements_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT settlements_reference_key UNIQUE (company_id, provider, reference),
    CONSTRAINT settlements_parcels_check CHECK (parcels > 0 AND differing BETWEEN 0 AND parcels)
);

CREATE INDEX settlements_created_idx ON settlements (company_id, created_at, id);

CREATE TABLE settlement_lines (
    company_id       bigint         NOT NULL,
    settlement_id    text           COLLATE "C" NOT NULL,
    number           integer        NOT NULL,
    parcel           text           NOT NULL,
    shipment_id      text           COLLATE "C",
    cod_amount       numeric,
    cod_fee          numeric,
    carrier_fee      numeric,
    insurance_fee    numeric,
    expected_amount  numeric        NOT NULL,
    remitted_amount  numeric        NOT NULL,
    CONSTRAINT settlement_lines_pkey PRIMARY KEY (company_id, settlement_id, number),
    CONSTRAINT settlement_lines_settlement_fkey FOREIGN KEY (company_id, settlement_id)
        REFERENCES settlements (company_id, id) ON DELETE CASCADE
);

CREATE INDEX settlement_lines_shipment_idx ON settlement_lines (company_id, shipment_id)
    WHERE shipment_id IS NOT NULL;

CREATE TABLE cod_differences (
    company_id     bigint         NOT NULL,
    id             text           COLLATE "C" NOT NULL,
    kind           text           COLLATE "C" NOT NULL,
    parcel         text           NOT NULL,
    shipment_id    text           COLLATE "C",
    order_id       text           COLLATE "C",
    settlement_id  text           COLLATE "C",
    line           integer,
    currency       text           COLLATE "C" NOT NULL,
    expected       numeric        NOT NULL,
    actual         numeric        NOT NULL,
    difference     numeric        NOT NULL,
    note           text,
    created_at     timestamptz(3) NOT NULL DEFAULT now(),
    resolved_at    timestamptz(3),
    cell           text           COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (kind || '/' || CASE WHEN resolved_at IS NULL THEN 'open' ELSE 'resolved' END) STORED,
    CONSTRAINT cod_differences_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT cod_differences_settlement_fkey FOREIGN KEY (company_id, settlement_id)
        REFERENCES settlements (company_id, id) ON DELETE CASCADE,
    CONSTRAINT cod_differences_kind_check CHECK (kind IN (
        'order_amount', 'cod_amount', 'cod_fee', 'carrier_fee', 'insurance_fee', 'remitted_amount', 'unknown_parcel',
        'not_cash_on_delivery', 'not_delivered', 'remitted_before', 'returned')),
    CONSTRAINT cod_differences_difference_check CHECK (abs(difference) = abs(actual - expected) AND difference <> 0)
);

CREATE INDEX cod_differences_created_idx ON cod_differences (company_id, created_at, id);
CREATE INDEX cod_differences_cell_idx ON cod_differences (company_id, cell, created_at, id);
CREATE INDEX cod_differences_shipment_idx ON cod_differences (company_id, shipment_id) WHERE shipment_id IS NOT NULL;
CREATE INDEX cod_differences_settlement_idx ON cod_differences (company_id, settlement_id)
    WHERE settlement_id IS NOT NULL;
