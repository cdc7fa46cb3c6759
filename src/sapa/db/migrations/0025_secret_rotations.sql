-- The key of stored secrets can be replaced. Sealed values begin with the id of their key from now on, and code before this
-- migration cannot open them: it names no older version.

SET LOCAL lock_timeout = '5s';


-- At most one row: the last time that all secrets were sealed anew, and how far it got.
CREATE TABLE secret_rotations (
    key_id        text           COLLATE "C" NOT NULL,
    requested_at  timestamptz(3) NOT NULL DEFAULT now(),
    finished_at   timestamptz(3),
    -- The last value that was looked at, in the order of tables, companies and positions.
    sealed_table  text           COLLATE "C" NOT NULL DEFAULT '',
    company_id    bigint         NOT NULL DEFAULT 0,
    position      text           COLLATE "C" NOT NULL DEFAULT '',
    resealed      bigint         NOT NULL DEFAULT 0,
    -- Values that no key of the installation opens.
    unreadable    bigint         NOT NULL DEFAULT 0,
    CONSTRAINT secret_rotations_pkey PRIMARY KEY (key_id)
);
