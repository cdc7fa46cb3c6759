-- Places and quotes: dictionaries of places, and what carriers said of places and prices, kept for a while.

SET LOCAL lock_timeout = '5s';


-- Places: a dictionary for the whole installation, read from a file that the operator brings. It belongs to nobody.
CREATE TABLE areas (
    -- The ministry's code without its dots; it begins with its parent's.
    code        bigint      NOT NULL,
    -- 1 province, 2 city or regency, 3 district, 4 sub-district; a province's parent is 0.
    level       smallint    NOT NULL,
    parent      bigint      NOT NULL,
    name        text        NOT NULL,
    -- Since when a newer file no longer has it.
    retired_at  timestamptz,
    CONSTRAINT areas_pkey PRIMARY KEY (code),
    CONSTRAINT areas_level_check CHECK (level BETWEEN 1 AND 4 AND (level = 1) = (parent = 0))
);

CREATE INDEX areas_parent_idx ON areas (parent, name, code) WHERE retired_at IS NULL;

-- A file on its way in, empty otherwise.
CREATE UNLOGGED TABLE area_arrivals (
    code        bigint      NOT NULL,
    level       smallint    NOT NULL,
    parent      bigint      NOT NULL,
    name        text        NOT NULL,
    CONSTRAINT area_arrivals_pkey PRIMARY KEY (code)
);

-- Append-only: which files were read.
CREATE TABLE area_datasets (
    id           bigint         GENERATED ALWAYS AS IDENTITY,
    name         text           NOT NULL,
    sha512       text           COLLATE "C" NOT NULL,
    areas        integer        NOT NULL,
    imported_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT area_datasets_pkey PRIMARY KEY (id)
);

-- What carriers said of the places they serve; an empty parent stands for the whole country.
CREATE TABLE coverage_cache (
    company_id  bigint      NOT NULL,
    adapter     text        COLLATE "C" NOT NULL,
    level       text        COLLATE "C" NOT NULL,
    parent      text        COLLATE "C" NOT NULL,
    areas       json        NOT NULL,
    fetched_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT coverage_cache_pkey PRIMARY KEY (company_id, adapter, level, parent)
);

-- What carriers asked for a journey, for some minutes. Unlogged: a crash of PostgreSQL only makes us ask again.
CREATE UNLOGGED TABLE quote_cache (
    company_id  bigint      NOT NULL,
    journey     bytea       NOT NULL,
    quote       json        NOT NULL,
    expires_at  timestamptz NOT NULL,
    CONSTRAINT quote_cache_pkey PRIMARY KEY (company_id, journey)
);

CREATE INDEX quote_cache_expires_idx ON quote_cache (expires_at);
