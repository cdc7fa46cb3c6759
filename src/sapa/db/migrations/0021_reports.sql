-- Reports walk a window of orders and of messages by their time. People join a company when they come, not when they are
-- invited.

SET LOCAL lock_timeout = '5s';


-- With what a report adds up, so that it reads the index alone.
DROP INDEX orders_created_idx;
CREATE INDEX orders_created_idx ON orders (company_id, created_at, id)
    INCLUDE (currency, status, financial_status, total);

-- Nothing but what never changes: what becomes of a message is written to its row alone.
CREATE INDEX messages_created_idx ON messages (company_id, created_at) WHERE direction = 'out';

-- Null until they come by a link: whom a company invites, it does not know yet.
ALTER TABLE memberships ADD COLUMN joined_at timestamptz(3);
UPDATE memberships m
   SET joined_at = m.created_at
  FROM users u
 WHERE u.id = m.user_id AND u.password_hash IS NOT NULL;
