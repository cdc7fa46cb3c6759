-- Pictures of products that were uploaded, at addresses that cannot be guessed.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

CREATE TABLE product_pictures (
    company_id  bigint NOT NULL,
    token       text   COLLATE "C" NOT NULL,
    file_id     text   COLLATE "C" NOT NULL,
    products    text[] NOT NULL DEFAULT '{}',
    CONSTRAINT product_pictures_pkey PRIMARY KEY (company_id, token)
);

CREATE UNIQUE INDEX product_pictures_file_key ON product_pictures (company_id, file_id);
