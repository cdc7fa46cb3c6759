-- A delivered shipment can be sent back: a return shipment has a number of its own and may name a refund.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE shipments
    ADD COLUMN return_of     text COLLATE "C",
    ADD COLUMN return_number text COLLATE "C",
    ADD COLUMN refund_id     text COLLATE "C",
    ADD CONSTRAINT shipments_return_check CHECK (
        (return_of IS NULL) = (return_number IS NULL) AND (return_of IS NOT NULL OR refund_id IS NULL)) NOT VALID;

CREATE TABLE return_numbers (
    company_id  bigint NOT NULL,
    last        bigint NOT NULL,
    CONSTRAINT return_numbers_pkey PRIMARY KEY (company_id)
) WITH (fillfactor = 50);
