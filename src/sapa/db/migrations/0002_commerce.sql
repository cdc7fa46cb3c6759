-- Products and orders.

SET LOCAL lock_timeout = '5s';


-- Amounts are kept in their shortest form, so that they are printed as they are stored.

CREATE TABLE products (
    company_id   bigint         NOT NULL,
    id           text           COLLATE "C" NOT NULL,
    -- The caller's own id; ours where none was given.
    product_id   text           COLLATE "C" NOT NULL,
    name         text           NOT NULL,
    description  text,
    media        text,
    medias       text[]         NOT NULL,
    status       text           COLLATE "C" NOT NULL,
    options      json           NOT NULL,
    tags         text[]         NOT NULL,
    types        text[]         NOT NULL,
    -- Folded name, own id and SKUs, a line each: what a search looks through.
    search_text  text           NOT NULL,
    created_at   timestamptz(3) NOT NULL DEFAULT now(),
    updated_at   timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT products_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT products_status_check CHECK (status IN ('active', 'draft', 'archived'))
);

CREATE UNIQUE INDEX products_product_id_key ON products (company_id, product_id);
CREATE INDEX products_created_idx ON products (company_id, created_at, id);
CREATE INDEX products_status_idx ON products (company_id, status, created_at, id);
CREATE INDEX products_search_idx ON products USING gin (company_id, search_text gin_trgm_ops);
CREATE INDEX products_tags_idx ON products USING gin (company_id, tags);

CREATE TABLE variants (
    company_id          bigint  NOT NULL,
    id                  text    COLLATE "C" NOT NULL,
    product_id          text    COLLATE "C" NOT NULL,
    position            integer NOT NULL,
    key                 text    NOT NULL,
    title               text    NOT NULL,
    price               numeric NOT NULL,
    compare_at_price    numeric,
    inventory_sku       text,
    media               text,
    -- Null where stock is not tracked.
    inventory_quantity  integer,
    CONSTRAINT variants_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT variants_product_fkey FOREIGN KEY (company_id, product_id)
        REFERENCES products (company_id, id) ON DELETE CASCADE,
    CONSTRAINT variants_price_check CHECK (price >= 0 AND scale(price) = min_scale(price)),
    CONSTRAINT variants_compare_at_price_check CHECK (
        compare_at_price >= 0 AND scale(compare_at_price) = min_scale(compare_at_price)),
    CONSTRAINT variants_inventory_quantity_check CHECK (inventory_quantity >= 0)
);

CREATE INDEX variants_product_idx ON variants (company_id, product_id, position);


-- The last order number of each company.
CREATE TABLE order_numbers (
    company_id  bigint NOT NULL,
    last        bigint NOT NULL,
    CONSTRAINT order_numbers_pkey PRIMARY KEY (company_id)
) WITH (fillfactor = 50);

-- An order is a document: its line items are kept as they were when it was placed, its customer as last known.
CREATE TABLE orders (
    company_id          bigint         NOT NULL,
    id                  text           COLLATE "C" NOT NULL,
    -- The caller's own id; ours where none was given.
    order_id            text           COLLATE "C" NOT NULL,
    order_number        text           COLLATE "C" NOT NULL,
    status              text           COLLATE "C" NOT NULL,
    fulfillment_status  text           COLLATE "C" NOT NULL,
    financial_status    text           COLLATE "C" NOT NULL,
    total               numeric        NOT NULL,
    currency            text           COLLATE "C" NOT NULL,
    notes               text,
    customer            json,
    line_items          json           NOT NULL,
    shipping_address    json,
    tags                text[]         NOT NULL,
    created_at          timestamptz(3) NOT NULL DEFAULT now(),
    updated_at          timestamptz(3) NOT NULL DEFAULT now(),
    customer_id         text           COLLATE "C",
    -- The customer's folded name: what a search looks through.
    customer_text       text           NOT NULL,
    -- The status to come back to.
    archived_from       text           COLLATE "C",
    restocked           boolean        NOT NULL DEFAULT false,
    -- Units taken from stock by variant: what goes back, whatever is tracked by then.
    taken               json           NOT NULL DEFAULT '{}',
    -- The counter's cell and the list's: one index serves every combination of the three.
    cell                text           COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (status || '/' || fulfillment_status || '/' || financial_status) STORED,
    CONSTRAINT orders_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT orders_status_check CHECK (status IN ('active', 'archived', 'cancelled', 'refunded')),
    CONSTRAINT orders_fulfillment_status_check CHECK (fulfillment_status IN ('unfulfilled', 'fulfilled')),
    CONSTRAINT orders_financial_status_check CHECK (financial_status IN ('pending', 'paid', 'refunded')),
    CONSTRAINT orders_archived_from_check CHECK ((status = 'archived') = (archived_from IS NOT NULL)),
    CONSTRAINT orders_total_check CHECK (total >= 0 AND scale(total) = min_scale(total))
);

CREATE UNIQUE INDEX orders_order_id_key ON orders (company_id, order_id);
CREATE UNIQUE INDEX orders_order_number_key ON orders (company_id, order_number);
CREATE INDEX orders_created_idx ON orders (company_id, created_at, id);
CREATE INDEX orders_cell_idx ON orders (company_id, cell, created_at, id);
CREATE INDEX orders_customer_idx ON orders (company_id, customer_id, created_at, id);
CREATE INDEX orders_search_idx ON orders USING gin (company_id, customer_text gin_trgm_ops);
