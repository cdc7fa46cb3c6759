-- Reports walk a window of orders and of messages by their time.

SET LOCAL lock_timeout = '5s';


-- With what a report adds up, so that it reads the index alone.
DROP INDEX orders_created_idx;
CREATE INDEX orders_created_idx ON orders (company_id, created_at, id)
    INCLUDE (currency, status, financial_status, total);

-- Nothing but what never changes: what becomes of a message is written to its row alone.
CREATE INDEX messages_created_idx ON messages (company_id, created_at) WHERE direction = 'out';
