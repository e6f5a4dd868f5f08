-- Functions of SQLite that the queries of the read models use.

CREATE FUNCTION instr(within text, part text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT strpos(within, part)
$$;

CREATE FUNCTION date(seconds bigint, what text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT to_char(to_timestamp(seconds) AT TIME ZONE 'UTC', 'YYYY-MM-DD')
$$;

CREATE FUNCTION json_each(object text) RETURNS TABLE (key text, value text)
LANGUAGE sql IMMUTABLE AS $$
    SELECT * FROM json_each_text(object::json)
$$;

-- The position up to which events were projected, and the hash of that event.
CREATE UNLOGGED TABLE checkpoint (position bigint NOT NULL, hash bytea NOT NULL);
