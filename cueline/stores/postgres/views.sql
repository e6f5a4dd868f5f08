-- Functions of SQLite that the queries of the read models use.

CREATE FUNCTION instr(within text, part text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT strpos(within, part)
$$;

CREATE FUNCTION date(seconds bigint, what text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT to_char(to_timestamp(seconds) AT TIME ZONE 'UTC', 'YYYY-MM-DD')
$$;

CREATE FUNCTION datetime(seconds bigint, what text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT to_char(to_timestamp(seconds) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')
$$;

CREATE FUNCTION round(number double precision, digits integer) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$
    SELECT pg_catalog.round(number::numeric, digits)::double precision
$$;

CREATE FUNCTION json_each(document text) RETURNS TABLE (key text, value text)
LANGUAGE sql IMMUTABLE AS $$
    SELECT * FROM json_each_text(
        CASE json_typeof(document::json) WHEN 'object' THEN document::json ELSE '{}' END)
    UNION ALL
    SELECT (place - 1)::text, item FROM json_array_elements_text(
        CASE json_typeof(document::json) WHEN 'array' THEN document::json ELSE '[]' END)
        WITH ORDINALITY AS items(item, place)
$$;

-- The words of a text, as FTS5 takes it apart: all of ASCII but letters, digits and -_./ divides
-- them, as do the common marks of other alphabets. A longer word is cut.
-- A call takes about 30 µs.
CREATE FUNCTION lexemes_of(text text) RETURNS tsvector LANGUAGE sql IMMUTABLE COST 2000 AS $$
    SELECT array_to_tsvector(array(
        SELECT left(word, 200) FROM regexp_split_to_table(text COLLATE "C",
            '[\u0001-,:-@\u005b-^`{-\u00bf\u2000-\u206f\u3000-\u303f]+') AS word
        WHERE word <> ''))
$$;

-- A query of FTS5 in the form of PostgreSQL: "a" AND ("b" OR "c"*).
CREATE FUNCTION query_of(query text) RETURNS tsquery LANGUAGE sql IMMUTABLE AS $$
    SELECT replace(replace(replace(replace(query,
        '"*', ''':*'), '"', ''''), ' AND ', ' & '), ' OR ', ' | ')::tsquery
$$;

CREATE UNLOGGED TABLE words (rowid bigint PRIMARY KEY, text text NOT NULL);
CREATE INDEX idx_words ON words USING gin (lexemes_of(text));

-- The position up to which events were projected, and the hash of that event.
CREATE UNLOGGED TABLE checkpoint (position bigint NOT NULL, hash bytea NOT NULL);
