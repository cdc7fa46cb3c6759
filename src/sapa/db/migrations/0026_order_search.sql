-- A search for orders ignores case in their ids and numbers, too.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


CREATE INDEX orders_order_id_idx ON orders (company_id, lower(order_id));
CREATE INDEX orders_order_number_idx ON orders (company_id, lower(order_number));
