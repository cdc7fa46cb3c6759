-- A delivered shipment can be sent back: a return shipment has a number of its own and may name a refund.
-- runs with code since: 0032

SET LOCAL lock_timeout = '5s';


ALTER TABLE shipments
    ADD COLUMN return_of     text COLLATE "C",
    ADD COLUMN return_number text COLLATE "C",
    ADD COLUMN refund_id     text COLLATE "C";

CREATE INDEX shipments_return_idx ON shipments (company_id, return_of) WHERE return_of IS NOT NULL;

CREATE TABLE return_numbers (
    company_id  bigint NOT NULL,
    last        bigint NOT NULL,
    CONSTRAINT return_numbers_pkey PRIMARY KEY (company_id)
) WITH (fillfactor = 50);
