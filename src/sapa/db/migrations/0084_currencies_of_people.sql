-- The currency in which a person reads sales in reports and at home; null: the company's.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

ALTER TABLE users ADD COLUMN currency text COLLATE "C";
