-- A company has a time zone, which its reports follow, and a language.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE companies
    ADD COLUMN time_zone text NOT NULL DEFAULT 'Asia/Jakarta',
    ADD COLUMN language  text NOT NULL DEFAULT 'id';

ALTER TABLE companies ADD CONSTRAINT companies_language_check CHECK (language IN ('en', 'id'));
