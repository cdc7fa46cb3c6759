-- Lists of orders by their total and of products by their name, with the column of their most used filter.
-- runs with code since: 0025
-- step: concurrently

CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_total_idx ON orders (company_id, total, id) INCLUDE (cell);
CREATE INDEX CONCURRENTLY IF NOT EXISTS products_name_idx ON products (company_id, lower(name), id) INCLUDE (status);
