-- One search over all levels of areas, which tolerates one edit in each word. A job fills the tables.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';


ALTER TABLE areas ADD COLUMN zip text COLLATE "C";
ALTER TABLE area_arrivals ADD COLUMN zip text COLLATE "C";

-- The words of each sub-district: of its own name and postal code (A), its district's (B), its city's (C) and its
-- province's (D).
CREATE TABLE area_words (
    code   bigint   NOT NULL,
    words  tsvector NOT NULL,
    CONSTRAINT area_words_pkey PRIMARY KEY (code)
);

-- Without a list of pending entries, which every search would read.
CREATE INDEX area_words_idx ON area_words USING gin (words) WITH (fastupdate = off);

-- Each of those words as it is, and with any one letter left out.
CREATE TABLE area_spellings (
    spelling  text COLLATE "C" NOT NULL,
    word      text COLLATE "C" NOT NULL,
    CONSTRAINT area_spellings_pkey PRIMARY KEY (spelling, word)
);
