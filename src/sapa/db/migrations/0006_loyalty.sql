-- The loyalty ledger. Points are whole numbers. Entries, lot moves and holds are append-only.

SET LOCAL lock_timeout = '5s';


CREATE TABLE loyalty_settings (
    company_id               bigint         NOT NULL,
    enabled                  boolean        NOT NULL DEFAULT true,
    earn_on                  text           COLLATE "C" NOT NULL DEFAULT 'paid',
    rounding                 text           COLLATE "C" NOT NULL DEFAULT 'floor',
    -- Null: points never expire.
    expiry_months            integer,
    reservation_ttl_seconds  integer        NOT NULL DEFAULT 900,
    updated_at               timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT loyalty_settings_pkey PRIMARY KEY (company_id),
    CONSTRAINT loyalty_settings_earn_on_check CHECK (earn_on IN ('paid', 'fulfilled', 'created')),
    CONSTRAINT loyalty_settings_rounding_check CHECK (rounding IN ('floor', 'round', 'ceil'))
);

CREATE TABLE loyalty_tiers (
    company_id       bigint  NOT NULL,
    currency_amount  numeric NOT NULL,
    points           bigint  NOT NULL,
    CONSTRAINT loyalty_tiers_pkey PRIMARY KEY (company_id, currency_amount),
    CONSTRAINT loyalty_tiers_check CHECK (currency_amount > 0 AND points > 0)
);

-- One per customer, made at its first entry. Every write to the ledger begins with this row's lock.
CREATE TABLE loyalty_wallets (
    company_id       bigint         NOT NULL,
    id               text           COLLATE "C" NOT NULL,
    customer_id      text           COLLATE "C" NOT NULL,
    available        bigint         NOT NULL DEFAULT 0,
    reserved         bigint         NOT NULL DEFAULT 0,
    lifetime_earned  bigint         NOT NULL DEFAULT 0,
    lifetime_burned  bigint         NOT NULL DEFAULT 0,
    -- The number of its last entry.
    version          bigint         NOT NULL DEFAULT 0,
    last_ledger_at   timestamptz(3),
    created_at       timestamptz(3) NOT NULL,
    updated_at       timestamptz(3) NOT NULL,
    CONSTRAINT loyalty_wallets_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT loyalty_wallets_customer_key UNIQUE (company_id, customer_id),
    CONSTRAINT loyalty_wallets_balance_check CHECK (
        available >= 0 AND reserved >= 0 AND lifetime_earned >= 0 AND lifetime_burned >= 0
        AND lifetime_earned - lifetime_burned = available + reserved),
    CONSTRAINT loyalty_wallets_size_check CHECK (lifetime_earned <= 1000000000000000000)
) WITH (fillfactor = 80);

-- Append-only. The running numbers of a wallet; the instants of one customer are unique, so that one can be a cursor.
CREATE TABLE loyalty_entries (
    company_id       bigint         NOT NULL,
    id               text           COLLATE "C" NOT NULL,
    wallet_id        text           COLLATE "C" NOT NULL,
    customer_id      text           COLLATE "C" NOT NULL,
    seq              bigint         NOT NULL,
    entry_type       text           COLLATE "C" NOT NULL,
    available_delta  bigint         NOT NULL,
    reserved_delta   bigint         NOT NULL,
    points_delta     bigint         NOT NULL GENERATED ALWAYS AS (available_delta + reserved_delta) STORED,
    available_after  bigint         NOT NULL,
    reserved_after   bigint         NOT NULL,
    reservation_id   text           COLLATE "C",
    reference_type   text           COLLATE "C",
    reference_id     text           COLLATE "C",
    idempotency_key  text           COLLATE "C",
    -- Of the request that the key came with.
    fingerprint      bytea,
    note             text,
    metadata         json,
    -- The console user; null for the API and for ourselves.
    created_by_id    bigint,
    occurred_at      timestamptz(3) NOT NULL,
    created_at       timestamptz(3) NOT NULL,
    CONSTRAINT loyalty_entries_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT loyalty_entries_seq_key UNIQUE (company_id, wallet_id, seq),
    CONSTRAINT loyalty_entries_occurred_key UNIQUE (company_id, customer_id, occurred_at),
    CONSTRAINT loyalty_entries_after_check CHECK (available_after >= 0 AND reserved_after >= 0),
    CONSTRAINT loyalty_entries_delta_check CHECK (CASE
        WHEN entry_type IN ('earn', 'bonus', 'adjust_add', 'redeem_reversal')
            THEN available_delta > 0 AND reserved_delta = 0
        WHEN entry_type IN ('adjust_deduct', 'earn_reversal', 'expire')
            THEN available_delta < 0 AND reserved_delta = 0
        WHEN entry_type = 'redeem_reserve' THEN available_delta < 0 AND reserved_delta = -available_delta
        WHEN entry_type = 'redeem_release' THEN available_delta > 0 AND reserved_delta = -available_delta
        WHEN entry_type = 'redeem_commit' THEN available_delta = 0 AND reserved_delta < 0
        ELSE false END)
);

CREATE UNIQUE INDEX loyalty_entries_idempotency_key ON loyalty_entries (company_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX loyalty_entries_added_idx ON loyalty_entries (company_id, customer_id, occurred_at)
    WHERE points_delta > 0;
CREATE INDEX loyalty_entries_deducted_idx ON loyalty_entries (company_id, customer_id, occurred_at)
    WHERE points_delta < 0;
CREATE INDEX loyalty_entries_reservation_idx ON loyalty_entries (company_id, reservation_id)
    WHERE reservation_id IS NOT NULL;

-- Points that were earned together and expire together.
CREATE TABLE loyalty_lots (
    company_id  bigint         NOT NULL,
    id          text           COLLATE "C" NOT NULL,
    wallet_id   text           COLLATE "C" NOT NULL,
    -- The order that earned them, if one did.
    order_id    text           COLLATE "C",
    granted     bigint         NOT NULL,
    remaining   bigint         NOT NULL,
    held        bigint         NOT NULL DEFAULT 0,
    earned_at   timestamptz(3) NOT NULL,
    expires_at  timestamptz(3),
    CONSTRAINT loyalty_lots_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT loyalty_lots_points_check CHECK (
        granted > 0 AND remaining >= 0 AND held >= 0 AND remaining + held <= granted)
) WITH (fillfactor = 80);

CREATE INDEX loyalty_lots_wallet_idx ON loyalty_lots (company_id, wallet_id, expires_at, earned_at, id)
    WHERE remaining > 0 OR held > 0;
CREATE INDEX loyalty_lots_due_idx ON loyalty_lots (company_id, expires_at) WHERE remaining > 0;

-- Append-only: which lots an entry took from and gave to.
CREATE TABLE loyalty_lot_moves (
    company_id       bigint NOT NULL,
    entry_id         text   COLLATE "C" NOT NULL,
    lot_id           text   COLLATE "C" NOT NULL,
    wallet_id        text   COLLATE "C" NOT NULL,
    available_delta  bigint NOT NULL,
    reserved_delta   bigint NOT NULL,
    CONSTRAINT loyalty_lot_moves_pkey PRIMARY KEY (company_id, entry_id, lot_id)
);

CREATE INDEX loyalty_lot_moves_wallet_idx ON loyalty_lot_moves (company_id, wallet_id, lot_id);

CREATE TABLE loyalty_reservations (
    company_id      bigint         NOT NULL,
    id              text           COLLATE "C" NOT NULL,
    wallet_id       text           COLLATE "C" NOT NULL,
    customer_id     text           COLLATE "C" NOT NULL,
    points          bigint         NOT NULL,
    status          text           COLLATE "C" NOT NULL DEFAULT 'reserved',
    reference_type  text           COLLATE "C",
    reference_id    text           COLLATE "C",
    redemption_id   text           COLLATE "C",
    expires_at      timestamptz(3) NOT NULL,
    created_at      timestamptz(3) NOT NULL,
    updated_at      timestamptz(3) NOT NULL,
    CONSTRAINT loyalty_reservations_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT loyalty_reservations_points_check CHECK (points > 0),
    CONSTRAINT loyalty_reservations_status_check CHECK (status IN ('reserved', 'committed', 'released', 'expired'))
) WITH (fillfactor = 80);

CREATE INDEX loyalty_reservations_wallet_idx ON loyalty_reservations (company_id, wallet_id, expires_at, id)
    WHERE status = 'reserved';
CREATE INDEX loyalty_reservations_due_idx ON loyalty_reservations (company_id, expires_at) WHERE status = 'reserved';

-- Append-only: which lots a reservation holds points of.
CREATE TABLE loyalty_holds (
    company_id      bigint NOT NULL,
    reservation_id  text   COLLATE "C" NOT NULL,
    lot_id          text   COLLATE "C" NOT NULL,
    points          bigint NOT NULL,
    CONSTRAINT loyalty_holds_pkey PRIMARY KEY (company_id, reservation_id, lot_id),
    CONSTRAINT loyalty_holds_points_check CHECK (points > 0)
);

-- What an order is worth by the terms under which it first earned, what it should have earned now, what is posted for
-- it, and what could not be taken back.
CREATE TABLE loyalty_order_positions (
    company_id  bigint  NOT NULL,
    order_id    text    COLLATE "C" NOT NULL,
    wallet_id   text    COLLATE "C" NOT NULL,
    earn_on     text    COLLATE "C" NOT NULL,
    worth       bigint  NOT NULL,
    target      bigint  NOT NULL,
    posted      bigint  NOT NULL,
    shortfall   bigint  NOT NULL,
    postings    integer NOT NULL,
    CONSTRAINT loyalty_order_positions_pkey PRIMARY KEY (company_id, order_id),
    CONSTRAINT loyalty_order_positions_check CHECK (
        worth > 0 AND target BETWEEN 0 AND worth AND shortfall >= 0 AND posted = target + shortfall)
) WITH (fillfactor = 80);

CREATE INDEX loyalty_order_positions_wallet_idx ON loyalty_order_positions (company_id, wallet_id);

-- How far the worker's round of checking has come, and what the last whole round found.
CREATE TABLE loyalty_checks (
    company_id  bigint         NOT NULL,
    position    text           COLLATE "C" NOT NULL,
    found       bigint         NOT NULL,
    drifting    bigint         NOT NULL,
    checked_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT loyalty_checks_pkey PRIMARY KEY (company_id)
);
