"""The rows of a run, made inside the database: a hash of the row's number picks each value, so that two runs have the
same customers and orders in no apparent order."""

CUSTOMERS = """
    INSERT INTO customers (company_id, id, email, email_key, phone_number, first_name, last_name, tags, addresses,
                           additional_data, subscription_status, search_text, created_at, updated_at)
    SELECT $1::bigint, 'cust_01' || lpad(to_hex(n), 8, '0') || left(md5('customer' || n), 16), email, email, phone,
           first, last, ($5::text[])[hash % 5 + 1:hash % 5 + 2],
           format('[{"id":"addr_01%s%s","firstName":"%s","lastName":"%s","phone":"%s","address1":"Jl. Merdeka %s",'
                  '"address2":null,"city":"%s","province":null,"country":"Indonesia","zip":"%s","mainAddress":true}]',
                  lpad(to_hex(n), 8, '0'), left(md5('address' || n), 16), first, last, phone, hash % 200 + 1,
                  ($6::text[])[hash % cardinality($6::text[]) + 1], 10000 + hash % 80000)::json,
           format('{"visits":%s}', hash % 40)::json, '[{"app":"CRM","status":"subscribe"}]'::json,
           lower(first || ' ' || last) || E'\\n' || email || E'\\n' || substr(phone, 2),
           created, created + make_interval(mins => (hash % ($2 - n + 1))::int)
      FROM (SELECT n, hash, first, last, lower(first || '.' || last) || n || '@example.com' AS email,
                   '+62811' || lpad(n::text, 8, '0') AS phone, now() - make_interval(mins => ($2 - n)::int) AS created
              FROM (SELECT n, hash, ($3::text[])[hash / 7 % cardinality($3::text[]) + 1] AS first,
                           ($4::text[])[hash / 911 % cardinality($4::text[]) + 1] AS last
                      FROM (SELECT n, abs(hashint8(n)::bigint) AS hash FROM generate_series(1, $2::bigint) AS n) AS a
                   ) AS b
           ) AS c"""

CUSTOMER_CELL = "INSERT INTO counter_cells (company_id, counter, cell, total) VALUES ($1, 'customers', '', $2)"

# Each order has a customer of the company, and one line or two, each with the variant as it was at that moment.
ORDERS = """
    INSERT INTO orders (company_id, id, order_id, order_number, status, fulfillment_status, financial_status, total,
                        currency, notes, customer, line_items, shipping_address, tags, created_at, updated_at,
                        customer_id, customer_text, archived_from, restocked, subtotal, total_paid, total_refunded,
                        outstanding, removed_goods, payments, refunds, recorded_cell)
    SELECT $1::bigint, 'order_01' || tail, 'web-' || n, (1000 + n)::text, status, fulfilled, paid,
           price * quantity * lines, 'IDR', CASE WHEN hash % 3 = 0 THEN 'Please ring twice.' END,
           format('{"id":"%s","firstName":"%s","lastName":"%s","email":"%s","phoneNumber":"%s"}',
                  c.id, c.first_name, c.last_name, c.email, c.phone_number)::json,
           ('[' || (SELECT string_agg(
               format('{"id":"li_0%s%s","quantity":%s,"price":%s,"title":"%s","productVariant":{"id":"var_01%s",'
                      '"key":"250 g","price":%s,"compareAtPrice":null,"inventorySku":"SKU-%s","media":null},'
                      '"discount":null,"total":%s,"discountAllocation":0,"tax":0,"charged":%s,"fulfilledQuantity":%s,'
                      '"refundedQuantity":0}',
                      line, tail, quantity, price, title, left(md5(title), 24), price, hash % 1000, price * quantity,
                      price * quantity, CASE WHEN fulfilled = 'fulfilled' THEN quantity ELSE 0 END), ',')
              FROM generate_series(1, lines) AS line) || ']')::json,
           format('{"id":"addr_01%s","firstName":"%s","lastName":"%s","phone":"%s","address1":"Jl. Merdeka %s",'
                  '"address2":null,"city":"%s","province":null,"country":"Indonesia","zip":"%s"}',
                  tail, c.first_name, c.last_name, c.phone_number, hash % 200 + 1,
                  ($4::text[])[hash % cardinality($4::text[]) + 1], 10000 + hash % 80000)::json,
           ($5::text[])[hash % 5 + 1:hash % 5 + hash % 3], created, created + make_interval(mins => (hash % 3000)::int),
           c.id, lower(c.first_name || ' ' || c.last_name),
           CASE WHEN status = 'archived' THEN 'active' END, status IN ('cancelled', 'refunded'),
           price * quantity * lines, CASE WHEN paid = 'pending' THEN 0 ELSE price * quantity * lines END,
           CASE WHEN paid = 'refunded' THEN price * quantity * lines ELSE 0 END,
           CASE WHEN paid = 'pending' THEN price * quantity * lines ELSE 0 END,
           CASE WHEN paid = 'refunded' THEN price * quantity * lines ELSE 0 END,
           CASE WHEN paid = 'pending' THEN '[]'::json ELSE format('[{"id":"pay_01%s","amount":%s,"method":null,'
                '"reference":null,"paidAt":"2026-01-31T09:30:00.000Z","createdAt":"2026-01-31T09:30:00.000Z",'
                '"voidedAt":null}]', tail, price * quantity * lines)::json END,
           CASE WHEN paid = 'refunded' THEN format('[{"id":"rfd_01%s","amount":%s,"shipping":0,"adjustment":%s,'
                '"lineItems":[],"reason":null,"createdAt":"2026-01-31T09:30:00.000Z"}]', tail,
                price * quantity * lines, price * quantity * lines)::json ELSE '[]'::json END,
           status || '/' || fulfilled || '/' || paid
      FROM (SELECT n, hash, status, lpad(to_hex(n), 8, '0') || left(md5('order' || n), 16) AS tail,
                   CASE WHEN status = 'archived' OR status <> 'cancelled' AND hash / 100 % 10 < 6 THEN 'fulfilled'
                        ELSE 'unfulfilled' END AS fulfilled,
                   CASE WHEN status = 'refunded' THEN 'refunded'
                        WHEN status = 'archived' OR hash / 1000 % 10 < 7 THEN 'paid'
                        ELSE 'pending' END AS paid,
                   now() - make_interval(secs => ($2 - n) * 30) AS created,
                   (25000 + hash % 40 * 5000)::numeric AS price, (hash % 3 + 1)::integer AS quantity,
                   (hash % 2 + 1)::integer AS lines, ($6::text[])[hash / 13 % cardinality($6::text[]) + 1] AS title,
                   hash / 17 % $3 + 1 AS customer
              FROM (SELECT n, hash, CASE WHEN hash % 100 < 70 THEN 'active' WHEN hash % 100 < 88 THEN 'archived'
                                         WHEN hash % 100 < 95 THEN 'cancelled' ELSE 'refunded' END AS status
                      FROM (SELECT n, abs(hashint8(n)::bigint) AS hash FROM generate_series(1, $2::bigint) AS n) AS a
                   ) AS b
           ) AS o
      JOIN customers c ON c.company_id = $1
       AND c.id = 'cust_01' || lpad(to_hex(o.customer), 8, '0') || left(md5('customer' || o.customer), 16)
     ORDER BY n"""

ORDER_CELLS = """
    INSERT INTO counter_cells (company_id, counter, cell, total)
    SELECT $1, 'orders', cell, count(*) FROM orders WHERE company_id = $1 GROUP BY cell"""

ORDER_NUMBER = "INSERT INTO order_numbers (company_id, last) VALUES ($1, 1000 + $2::bigint)"

# The baseline keeps lines in a table of their own, as most people would. Sapa's role gets nothing in our schema that
# Sapa does not know of, so it stands in another.
BASELINE_LINES = """
    CREATE SCHEMA baseline;
    GRANT USAGE ON SCHEMA baseline TO sapa_app;
    CREATE TABLE baseline.line_items (
        company_id bigint NOT NULL, id text COLLATE "C" NOT NULL, order_id text COLLATE "C" NOT NULL,
        position integer NOT NULL, quantity integer NOT NULL, price numeric NOT NULL, title text NOT NULL,
        product_variant json, discount json, total numeric NOT NULL, discount_allocation numeric NOT NULL,
        tax numeric NOT NULL, charged numeric NOT NULL, fulfilled_quantity integer NOT NULL,
        refunded_quantity integer NOT NULL
    );
    GRANT SELECT, INSERT ON baseline.line_items TO sapa_app;
    INSERT INTO baseline.line_items
    SELECT company_id, line->>'id', o.id, position, (line->>'quantity')::integer, (line->>'price')::numeric,
           line->>'title', line->'productVariant', NULL, (line->>'total')::numeric, 0, 0,
           (line->>'charged')::numeric, (line->>'fulfilledQuantity')::integer, 0
      FROM orders AS o
     CROSS JOIN LATERAL json_array_elements(line_items) WITH ORDINALITY AS l (line, position);
    ALTER TABLE baseline.line_items ADD PRIMARY KEY (company_id, id);
    CREATE INDEX line_items_order_idx ON baseline.line_items (company_id, order_id, position)"""

SECONDARY_INDEXES = """
    SELECT indexname AS name, indexdef AS definition FROM pg_indexes
     WHERE tablename IN ('customers', 'orders') AND indexname NOT LIKE '%_pkey'"""

SOME_ORDERS = "SELECT id FROM orders WHERE company_id = $1 ORDER BY md5(id) LIMIT 500"
SOME_CUSTOMERS = "SELECT id FROM customers WHERE company_id = $1 ORDER BY md5(id) LIMIT 500"
NAMES_OF = """
    SELECT customer_text FROM orders
     WHERE company_id = $1 AND id = ANY($2)
     GROUP BY customer_text
     ORDER BY md5(customer_text)
     LIMIT 20"""
