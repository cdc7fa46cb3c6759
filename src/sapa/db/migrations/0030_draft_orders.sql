-- Draft orders: prepared and priced, and turned into an order later.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


CREATE TABLE draft_orders (
    company_id        bigint         NOT NULL,
    id                text           COLLATE "C" NOT NULL,
    status            text           COLLATE "C" NOT NULL DEFAULT 'open',
    -- The order that it became.
    order_id          text           COLLATE "C",
    customer_id       text           COLLATE "C",
    customer          json,
    shipping_address  json,
    currency          text           COLLATE "C" NOT NULL,
    notes             text,
    tags              text[]         NOT NULL,
    line_items        json           NOT NULL,
    discounts         json           NOT NULL,
    shipping_lines    json           NOT NULL,
    fees              json           NOT NULL,
    tax_lines         json           NOT NULL,
    subtotal          numeric        NOT NULL,
    discount_total    numeric        NOT NULL,
    shipping_total    numeric        NOT NULL,
    fee_total         numeric        NOT NULL,
    tax_total         numeric        NOT NULL,
    total             numeric        NOT NULL,
    created_at        timestamptz(3) NOT NULL DEFAULT now(),
    updated_at        timestamptz(3) NOT NULL DEFAULT now(),
    completed_at      timestamptz(3),
    CONSTRAINT draft_orders_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT draft_orders_status_check CHECK (status IN ('open', 'completed')),
    CONSTRAINT draft_orders_completed_check CHECK (
        (status = 'completed') = (order_id IS NOT NULL) AND (status = 'completed') = (completed_at IS NOT NULL)),
    CONSTRAINT draft_orders_amounts_check CHECK (
        discount_total BETWEEN 0 AND subtotal AND shipping_total >= 0 AND fee_total >= 0 AND tax_total >= 0
        AND total BETWEEN subtotal - discount_total + shipping_total + fee_total
                      AND subtotal - discount_total + shipping_total + fee_total + tax_total)
);

CREATE INDEX draft_orders_created_idx ON draft_orders (company_id, created_at, id);
CREATE INDEX draft_orders_status_idx ON draft_orders (company_id, status, created_at, id);
