-- What products are sorted by and found by: their lowest price and their stock, computed from their variants.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

ALTER TABLE products ADD COLUMN least_price numeric;
ALTER TABLE products ADD COLUMN stock bigint;
ALTER TABLE products ADD COLUMN least_stock integer;
