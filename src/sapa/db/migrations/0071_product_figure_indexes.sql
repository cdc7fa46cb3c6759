-- Lists of products by their price and their stock, with the column of their most used filter.
-- runs with code since: 0025
-- step: concurrently

CREATE INDEX CONCURRENTLY IF NOT EXISTS products_price_idx ON products (company_id, least_price, id) INCLUDE (status);
CREATE INDEX CONCURRENTLY IF NOT EXISTS products_stock_idx ON products (company_id, stock, id) INCLUDE (status);
CREATE INDEX CONCURRENTLY IF NOT EXISTS products_least_stock_idx ON products (company_id, least_stock) INCLUDE (status);
