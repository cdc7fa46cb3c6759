-- Rewards, and what became of them. A redemption keeps what its reward was, so rewards come and go freely.

SET LOCAL lock_timeout = '5s';


CREATE TABLE loyalty_reward_options (
    company_id               bigint         NOT NULL,
    id                       text           COLLATE "C" NOT NULL,
    reward_name              text           NOT NULL,
    cost_to_redeem           bigint         NOT NULL,
    discount_type            text           COLLATE "C" NOT NULL,
    -- Null for free shipping.
    discount_value           numeric,
    expiration_preset        text           COLLATE "C" NOT NULL,
    voucher_prefix           text           COLLATE "C",
    minimum_purchase_amount  numeric,
    search_text              text           NOT NULL,
    created_at               timestamptz(3) NOT NULL DEFAULT now(),
    updated_at               timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT loyalty_reward_options_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT loyalty_reward_options_cost_check CHECK (cost_to_redeem > 0),
    CONSTRAINT loyalty_reward_options_discount_check CHECK (CASE
        WHEN discount_type = 'free_shipping' THEN discount_value IS NULL
        WHEN discount_type = 'percentage' THEN discount_value IS NOT NULL AND discount_value BETWEEN 0 AND 100
        WHEN discount_type = 'fixed_amount' THEN discount_value IS NOT NULL AND discount_value > 0
        ELSE false END)
);

CREATE INDEX loyalty_reward_options_created_idx ON loyalty_reward_options (company_id, created_at, id);

-- A reservation of the ledger holds its points; their statuses are always the same. The instant of its entry in the
-- ledger is the one of its making, so that it can be a cursor.
CREATE TABLE loyalty_redemptions (
    company_id               bigint         NOT NULL,
    id                       text           COLLATE "C" NOT NULL,
    wallet_id                text           COLLATE "C" NOT NULL,
    customer_id              text           COLLATE "C" NOT NULL,
    reward_option_id         text           COLLATE "C" NOT NULL,
    reward_name              text           NOT NULL,
    points_cost              bigint         NOT NULL,
    status                   text           COLLATE "C" NOT NULL DEFAULT 'reserved',
    voucher_code             text           COLLATE "C" NOT NULL,
    discount_type            text           COLLATE "C" NOT NULL,
    discount_value           numeric,
    minimum_purchase_amount  numeric,
    expiration_preset        text           COLLATE "C" NOT NULL,
    metadata                 json,
    search_text              text           NOT NULL,
    reserved_until           timestamptz(3) NOT NULL,
    committed_at             timestamptz(3),
    -- Of the voucher; null before the commit, and where it is valid for ever.
    expires_at               timestamptz(3),
    created_at               timestamptz(3) NOT NULL,
    updated_at               timestamptz(3) NOT NULL,
    CONSTRAINT loyalty_redemptions_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT loyalty_redemptions_created_key UNIQUE (company_id, wallet_id, created_at),
    CONSTRAINT loyalty_redemptions_cost_check CHECK (points_cost > 0),
    CONSTRAINT loyalty_redemptions_status_check CHECK (
        status IN ('reserved', 'committed', 'released', 'expired', 'failed')
        AND (status = 'committed') = (committed_at IS NOT NULL))
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX loyalty_redemptions_voucher_key ON loyalty_redemptions (company_id, upper(voucher_code))
    WHERE status IN ('reserved', 'committed');
CREATE INDEX loyalty_redemptions_option_idx ON loyalty_redemptions (company_id, reward_option_id, customer_id)
    WHERE status IN ('reserved', 'committed');
CREATE UNIQUE INDEX loyalty_reservations_redemption_key ON loyalty_reservations (company_id, redemption_id)
    WHERE redemption_id IS NOT NULL;
