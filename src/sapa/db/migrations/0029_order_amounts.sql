-- Orders have discounts, shipping, fees and taxes, are paid and refunded in parts, and keep a history.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


-- Null in the four amounts that depend on others: an order of an earlier version, which the worker completes.
ALTER TABLE orders
    ADD COLUMN subtotal          numeric,
    ADD COLUMN discount_total    numeric NOT NULL DEFAULT 0,
    ADD COLUMN shipping_total    numeric NOT NULL DEFAULT 0,
    ADD COLUMN fee_total         numeric NOT NULL DEFAULT 0,
    ADD COLUMN tax_total         numeric NOT NULL DEFAULT 0,
    ADD COLUMN total_paid        numeric,
    ADD COLUMN total_refunded    numeric,
    ADD COLUMN outstanding       numeric,
    ADD COLUMN removed_goods     numeric NOT NULL DEFAULT 0,
    ADD COLUMN removed_shipping  numeric NOT NULL DEFAULT 0,
    ADD COLUMN removed_fees      numeric NOT NULL DEFAULT 0,
    ADD COLUMN removed_tax       numeric NOT NULL DEFAULT 0,
    ADD COLUMN discounts         json    NOT NULL DEFAULT '[]',
    ADD COLUMN shipping_lines    json    NOT NULL DEFAULT '[]',
    ADD COLUMN fees              json    NOT NULL DEFAULT '[]',
    ADD COLUMN tax_lines         json    NOT NULL DEFAULT '[]',
    ADD COLUMN payments          json    NOT NULL DEFAULT '[]',
    ADD COLUMN refunds           json    NOT NULL DEFAULT '[]',
    ADD COLUMN fulfillments      json    NOT NULL DEFAULT '[]',
    ADD COLUMN placed_by         json,
    -- The cell for which payments, refunds and fulfilments were recorded. Code before this migration changes the
    -- statuses and records nothing: where the two differ, the worker does that.
    ADD COLUMN recorded_cell     text    COLLATE "C";

-- Not valid: existing rows are checked by a later migration, while orders change.
ALTER TABLE orders DROP CONSTRAINT orders_financial_status_check;
ALTER TABLE orders
    ADD CONSTRAINT orders_financial_status_check CHECK (
        financial_status IN ('pending', 'partially_paid', 'paid', 'partially_refunded', 'refunded')) NOT VALID,
    ADD CONSTRAINT orders_amounts_check CHECK (
        discount_total BETWEEN 0 AND subtotal AND shipping_total >= 0 AND fee_total >= 0 AND tax_total >= 0
        AND total BETWEEN subtotal - discount_total + shipping_total + fee_total
                      AND subtotal - discount_total + shipping_total + fee_total + tax_total) NOT VALID,
    ADD CONSTRAINT orders_balance_check CHECK (
        total_refunded BETWEEN 0 AND total_paid
        AND removed_goods >= 0 AND removed_shipping >= 0 AND removed_fees >= 0 AND removed_tax >= 0
        AND removed_goods + removed_shipping + removed_fees + removed_tax <= total
        AND outstanding = total - removed_goods - removed_shipping - removed_fees - removed_tax
                          - (total_paid - total_refunded)) NOT VALID;

-- Lines of an order of an earlier version, with the fields that they did not have then. It has a path of its own because
-- the planner would parse it for every statement that reads orders otherwise: it may inline functions without one.
CREATE FUNCTION complete_line_items(line_items json, fulfillment_status text) RETURNS json
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog AS $$
    SELECT coalesce(('[' || string_agg(
               left(old.line::text, -1) || ',"discount":null,"total":' || old.total
               || ',"discountAllocation":0,"tax":0,"charged":' || old.total || ',"fulfilledQuantity":'
               || CASE WHEN fulfillment_status = 'fulfilled' THEN old.line ->> 'quantity' ELSE '0' END
               || ',"refundedQuantity":0}', ',' ORDER BY old.place) || ']')::json, line_items)
      FROM (SELECT line, place,
                   trim_scale((line ->> 'price')::numeric * (line ->> 'quantity')::integer)::text AS total
              FROM json_array_elements(line_items) WITH ORDINALITY AS stored (line, place)) AS old
$$;

REVOKE ALL ON FUNCTION complete_line_items(json, text) FROM PUBLIC;

-- Payments and refunds by their own time, for the report; the orders hold them in full. A voided payment is deleted.
CREATE TABLE order_transactions (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    order_id     text           COLLATE "C" NOT NULL,
    kind         text           COLLATE "C" NOT NULL,
    amount       numeric        NOT NULL,
    currency     text           COLLATE "C" NOT NULL,
    -- Null for a refund, and for a payment that was recorded by setting the status.
    method       text,
    occurred_at  timestamptz(3) NOT NULL,
    CONSTRAINT order_transactions_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT order_transactions_kind_check CHECK (kind IN ('payment', 'refund')),
    CONSTRAINT order_transactions_amount_check CHECK (amount > 0 AND scale(amount) = min_scale(amount))
);

CREATE INDEX order_transactions_occurred_idx ON order_transactions (company_id, occurred_at, id)
    INCLUDE (kind, currency, amount);

-- Who changed what of an order. Its first entry, that it was placed, is read from the order itself.
CREATE TABLE order_history (
    company_id  bigint         NOT NULL,
    order_id    text           COLLATE "C" NOT NULL,
    number      bigint         GENERATED ALWAYS AS IDENTITY,
    id          text           COLLATE "C" NOT NULL,
    action      text           COLLATE "C" NOT NULL,
    actor       json           NOT NULL,
    -- The payment, refund or fulfilment that was recorded.
    reference   text           COLLATE "C",
    changes     json           NOT NULL,
    created_at  timestamptz(3) NOT NULL,
    CONSTRAINT order_history_pkey PRIMARY KEY (company_id, order_id, number)
);
