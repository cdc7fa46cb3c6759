-- Checks the constraints of 0029 and 0032 on the rows that were there before, and makes the indexes that 0029 needs: here
-- only the writers of orders wait, and only for the indexes.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE loyalty_order_positions
    VALIDATE CONSTRAINT loyalty_order_positions_check,
    VALIDATE CONSTRAINT loyalty_order_positions_terms_check;
ALTER TABLE orders
    VALIDATE CONSTRAINT orders_financial_status_check,
    VALIDATE CONSTRAINT orders_amounts_check,
    VALIDATE CONSTRAINT orders_balance_check;

CREATE INDEX orders_unrecorded_idx ON orders (company_id, recorded_cell) WHERE recorded_cell IS DISTINCT FROM cell;

CREATE INDEX orders_sales_idx ON orders (company_id, created_at, id)
    INCLUDE (currency, status, archived_from, total, subtotal, discount_total, shipping_total, fee_total,
             removed_goods, removed_shipping, removed_fees, removed_tax);
DROP INDEX orders_created_idx;
