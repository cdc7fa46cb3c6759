-- Every shipment has a public tracking page at an address that cannot be guessed.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE shipments ADD COLUMN tracking_page text COLLATE "C";

CREATE TABLE tracking_page_settings (
    company_id    bigint         NOT NULL,
    display_name  text,
    color         text           COLLATE "C",
    logo          bytea,
    logo_type     text           COLLATE "C",
    language      text           COLLATE "C" NOT NULL DEFAULT 'id',
    updated_at    timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT tracking_page_settings_pkey PRIMARY KEY (company_id),
    CONSTRAINT tracking_page_settings_color_check CHECK (color ~ '^#[0-9a-f]{6}$'),
    CONSTRAINT tracking_page_settings_logo_check CHECK (
        (logo IS NULL) = (logo_type IS NULL) AND octet_length(logo) <= 20480
        AND logo_type IN ('image/png', 'image/jpeg', 'image/webp')),
    CONSTRAINT tracking_page_settings_language_check CHECK (language IN ('id', 'en'))
);
