-- Where orders are found by one or two letters: the words of the customer's name.
-- runs with code since: 0025
-- step: concurrently

CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_first_word_idx ON orders (company_id, customer_text COLLATE "C")
    INCLUDE (created_at, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_second_word_idx
    ON orders (company_id, (split_part(customer_text, ' ', 2)) COLLATE "C")
    INCLUDE (customer_text, created_at, id) WHERE split_part(customer_text, ' ', 2) <> '';
CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_third_word_idx
    ON orders (company_id, (split_part(customer_text, ' ', 3)) COLLATE "C")
    INCLUDE (customer_text, created_at, id) WHERE split_part(customer_text, ' ', 3) <> '';
CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_fourth_word_idx
    ON orders (company_id, (split_part(customer_text, ' ', 4)) COLLATE "C")
    INCLUDE (customer_text, created_at, id) WHERE split_part(customer_text, ' ', 4) <> '';
-- In place of the index on the same expression: with what the search needs beside it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_own_id_idx ON orders (company_id, lower(order_id))
    INCLUDE (order_id, customer_text, created_at, id);
DROP INDEX CONCURRENTLY IF EXISTS orders_order_id_idx;
