-- Orders show their customer's name. Of a customer with very many of them the worker brings the rest up to date.

SET LOCAL lock_timeout = '5s';


-- A customer whose name changed and who has very many orders: what those before the position are still to show. The row
-- goes with the last of them.
CREATE TABLE customer_copies (
    company_id     bigint         NOT NULL,
    customer_id    text           COLLATE "C" NOT NULL,
    customer       json           NOT NULL,
    customer_text  text           NOT NULL,
    before_at      timestamptz(3) NOT NULL,
    before_id      text           COLLATE "C" NOT NULL,
    touched_at     timestamptz    NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT customer_copies_pkey PRIMARY KEY (company_id, customer_id)
);

-- Until now the 2,000 newest were changed and the rest kept the earlier name. The newest shows the present one.
INSERT INTO customer_copies (company_id, customer_id, customer, customer_text, before_at, before_id)
SELECT many.company_id, many.customer_id, newest.customer, newest.customer_text, newest.created_at, newest.id
  FROM (SELECT company_id, customer_id
          FROM orders
         WHERE customer_id IS NOT NULL
         GROUP BY company_id, customer_id
        HAVING count(*) > 2000) AS many
 CROSS JOIN LATERAL (
       SELECT o.id, o.created_at, o.customer, o.customer_text
         FROM orders o
        WHERE o.company_id = many.company_id AND o.customer_id = many.customer_id
        ORDER BY o.created_at DESC, o.id DESC
        LIMIT 1) AS newest;
