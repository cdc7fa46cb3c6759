-- Shipping: shipments, their bookings and history, what carriers call back with, and store locations.

SET LOCAL lock_timeout = '5s';


CREATE TABLE store_locations (
    company_id    bigint         NOT NULL,
    id            text           COLLATE "C" NOT NULL,
    name          text           NOT NULL,
    contact_name  text,
    phone         text,
    email         text,
    address       text           NOT NULL,
    notes         text,
    city          text,
    province      text,
    country       text,
    zip           text,
    kecamatan     text,
    kelurahan     text,
    kecamatan_id  bigint,
    kelurahan_id  bigint,
    coordinates   json,
    is_default    boolean        NOT NULL,
    created_at    timestamptz(3) NOT NULL DEFAULT now(),
    updated_at    timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT store_locations_pkey PRIMARY KEY (company_id, id)
);

CREATE UNIQUE INDEX store_locations_default_key ON store_locations (company_id) WHERE is_default;
CREATE INDEX store_locations_created_idx ON store_locations (company_id, created_at, id);

CREATE TABLE shipments (
    company_id           bigint         NOT NULL,
    id                   text           COLLATE "C" NOT NULL,
    order_id             text           COLLATE "C",
    provider             text           COLLATE "C" NOT NULL,
    provider_label       text           NOT NULL,
    name                 text,
    fee                  numeric,
    currency             text           COLLATE "C" NOT NULL,
    shipping_status      text           COLLATE "C" NOT NULL,
    service_type         text           COLLATE "C",
    service_name         text,
    service_code         text,
    selected_expedition  text,
    selected_delivery    text,
    courier_group        text,
    vehicle_type         text           COLLATE "C",
    bike_fuel_type       text           COLLATE "C",
    package_handover     text           COLLATE "C" NOT NULL,
    pickup_schedule      timestamptz(3),
    pickup_city          text,
    store_location_id    text           COLLATE "C",
    sender               json,
    delivery             json,
    package              json,
    driver               json,
    insurance            boolean        NOT NULL,
    insurance_fee        numeric,
    insurance_amount     numeric,
    discount_amount      numeric,
    discount_percentage  numeric,
    distance             numeric,
    tracking_url         text,
    awb                  text           COLLATE "C",
    order_no             text           COLLATE "C",
    booking_id           text           COLLATE "C",
    pickup_number        text,
    payment_id           text,
    payment_status       text           COLLATE "C",
    status_code          integer,
    cancellation_reason  text,
    cancelled_by         text,
    cancelled_source     text,
    event_timestamp      timestamptz(3),
    needs_action         boolean        NOT NULL DEFAULT false,
    problem              text,
    created_at           timestamptz(3) NOT NULL DEFAULT now(),
    updated_at           timestamptz(3) NOT NULL DEFAULT now(),
    -- Our own name of the booking that counts, and who it was made with.
    reference            text           COLLATE "C",
    adapter              text           COLLATE "C",
    picked_up_at         timestamptz(3),
    -- Where a refused cancellation leads back to, and when the carrier is asked again; in the company's time.
    cancelling_from      text           COLLATE "C",
    cancel_due_at        timestamptz(3),
    cancel_tries         integer        NOT NULL DEFAULT 0,
    -- When to ask the carrier how it goes; in the company's time.
    poll_at              timestamptz(3),
    -- Folded names and numbers: what a search looks through.
    search_text          text           NOT NULL,
    cell                 text           COLLATE "C" NOT NULL
        GENERATED ALWAYS AS (provider || '/' || shipping_status) STORED,
    CONSTRAINT shipments_pkey PRIMARY KEY (company_id, id)
) WITH (fillfactor = 80);

CREATE INDEX shipments_created_idx ON shipments (company_id, created_at, id);
CREATE INDEX shipments_cell_idx ON shipments (company_id, cell, created_at, id);
CREATE INDEX shipments_order_idx ON shipments (company_id, order_id, created_at, id) WHERE order_id IS NOT NULL;
CREATE INDEX shipments_awb_idx ON shipments (company_id, awb) WHERE awb IS NOT NULL;
CREATE INDEX shipments_order_no_idx ON shipments (company_id, order_no) WHERE order_no IS NOT NULL;
CREATE INDEX shipments_store_idx ON shipments (company_id, store_location_id) WHERE store_location_id IS NOT NULL;
CREATE INDEX shipments_search_idx ON shipments USING gin (company_id, search_text gin_trgm_ops);
CREATE INDEX shipments_cancel_idx ON shipments (company_id, cancel_due_at) WHERE cancel_due_at IS NOT NULL;
CREATE INDEX shipments_poll_idx ON shipments (company_id, poll_at) WHERE poll_at IS NOT NULL;

-- Every try to book with a carrier, written before the first byte leaves. What is pending was certainly not sent; what
-- is sent may have been, and is never sent again.
CREATE TABLE shipment_bookings (
    company_id   bigint         NOT NULL,
    shipment_id  text           COLLATE "C" NOT NULL,
    number       integer        NOT NULL,
    reference    text           COLLATE "C" NOT NULL,
    adapter      text           COLLATE "C" NOT NULL,
    state        text           COLLATE "C" NOT NULL,
    order_no     text           COLLATE "C",
    awb          text           COLLATE "C",
    booking_id   text           COLLATE "C",
    error        text,
    resolved_by  text           COLLATE "C",
    sends        integer        NOT NULL DEFAULT 0,
    looks        integer        NOT NULL DEFAULT 0,
    not_found    integer        NOT NULL DEFAULT 0,
    created_at   timestamptz(3) NOT NULL DEFAULT now(),
    -- In the company's time, as is the instant at which somebody has to look after it.
    sent_at      timestamptz(3),
    due_at       timestamptz(3),
    CONSTRAINT shipment_bookings_pkey PRIMARY KEY (company_id, shipment_id, number),
    CONSTRAINT shipment_bookings_reference_key UNIQUE (company_id, reference),
    CONSTRAINT shipment_bookings_shipment_fkey FOREIGN KEY (company_id, shipment_id)
        REFERENCES shipments (company_id, id) ON DELETE CASCADE,
    CONSTRAINT shipment_bookings_state_check CHECK (
        state IN ('pending', 'sent', 'unknown', 'succeeded', 'failed', 'unwanted', 'closed'))
);

CREATE UNIQUE INDEX shipment_bookings_open_key ON shipment_bookings (company_id, shipment_id)
    WHERE state IN ('pending', 'sent', 'unknown', 'succeeded');
CREATE INDEX shipment_bookings_due_idx ON shipment_bookings (company_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX shipment_bookings_order_no_idx ON shipment_bookings (company_id, order_no) WHERE order_no IS NOT NULL;

-- What carriers said of a shipment, applied or not. Append-only.
CREATE TABLE shipment_events (
    company_id   bigint         NOT NULL,
    shipment_id  text           COLLATE "C" NOT NULL,
    dedupe_key   text           COLLATE "C" NOT NULL,
    occurred_at  timestamptz(3) NOT NULL,
    received_at  timestamptz(3) NOT NULL DEFAULT now(),
    status       text           COLLATE "C",
    status_code  integer,
    text         text           NOT NULL,
    reason       text,
    receiver     text,
    proof        text[]         NOT NULL,
    source       text           COLLATE "C" NOT NULL,
    applied      boolean        NOT NULL,
    CONSTRAINT shipment_events_pkey PRIMARY KEY (company_id, shipment_id, dedupe_key)
);

-- Callbacks as they came in. They are deleted once their time is over.
CREATE TABLE carrier_callbacks (
    company_id    bigint         NOT NULL,
    id            bigint         GENERATED ALWAYS AS IDENTITY,
    adapter       text           COLLATE "C" NOT NULL,
    digest        bytea          NOT NULL,
    body          bytea          NOT NULL,
    events        json           NOT NULL,
    received_at   timestamptz(3) NOT NULL DEFAULT now(),
    due_at        timestamptz(3) DEFAULT now(),
    tries         integer        NOT NULL DEFAULT 0,
    processed_at  timestamptz(3),
    note          text,
    CONSTRAINT carrier_callbacks_pkey PRIMARY KEY (company_id, id),
    CONSTRAINT carrier_callbacks_digest_key UNIQUE (company_id, adapter, digest)
);

CREATE INDEX carrier_callbacks_due_idx ON carrier_callbacks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX carrier_callbacks_received_idx ON carrier_callbacks (company_id, received_at);
