-- Points follow what was paid of an order. An order keeps the terms under which it first earned: the tiers of then.
-- Code before this migration replaces the tiers of version 1 in place: do not change tiers during the upgrade.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE loyalty_settings ADD COLUMN tiers_version integer NOT NULL DEFAULT 1;

ALTER TABLE loyalty_tiers ADD COLUMN version integer NOT NULL DEFAULT 1;
ALTER TABLE loyalty_tiers DROP CONSTRAINT loyalty_tiers_pkey;
ALTER TABLE loyalty_tiers ADD CONSTRAINT loyalty_tiers_pkey PRIMARY KEY (company_id, version, currency_amount);

-- Null in both: an order that earned before; it keeps its worth, in proportion to what is left of its total.
ALTER TABLE loyalty_order_positions
    ADD COLUMN tiers_version integer,
    ADD COLUMN rounding      text COLLATE "C";

-- Not valid: existing rows are checked by a later migration, while points change.
ALTER TABLE loyalty_order_positions DROP CONSTRAINT loyalty_order_positions_check;
ALTER TABLE loyalty_order_positions
    ADD CONSTRAINT loyalty_order_positions_check CHECK (
        worth > 0 AND target >= 0 AND shortfall >= 0 AND posted = target + shortfall) NOT VALID,
    ADD CONSTRAINT loyalty_order_positions_terms_check CHECK (
        (tiers_version IS NULL) = (rounding IS NULL)) NOT VALID;
