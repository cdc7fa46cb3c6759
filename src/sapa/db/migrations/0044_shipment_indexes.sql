-- Indexes of the columns that shipments got before, and the check of their constraints on rows of before. Apart from the
-- columns, so that only those who change shipments wait, and not those who read them.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE shipments VALIDATE CONSTRAINT shipments_cod_check, VALIDATE CONSTRAINT shipments_return_check;

CREATE INDEX shipments_tracking_page_idx ON shipments (tracking_page) WHERE tracking_page IS NOT NULL;
CREATE INDEX shipments_cod_idx ON shipments (company_id, created_at, id) WHERE cod_amount IS NOT NULL;
CREATE INDEX shipments_return_idx ON shipments (company_id, return_of) WHERE return_of IS NOT NULL;
