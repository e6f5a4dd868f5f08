-- The function `append` of a log without its chain and its checks, for appends of one write each.
CREATE OR REPLACE FUNCTION append(
    of_log text,
    clock_us bigint,
    s_name text[],
    s_category text[],
    a_key text[],
    a_stream bigint[],
    a_writes bigint[],
    w_stream bigint[],
    w_expected bigint[],
    w_epoch bigint[],
    w_parent bigint[],
    w_parent_version bigint[],
    w_events bigint[],
    e_write bigint[],
    e_seq bigint[],
    e_type text[],
    e_schema bigint[],
    e_payload bytea[],
    e_occurred_us bigint[],
    e_actor text[],
    e_attrs text[],
    e_correlation_id text[],
    e_causation_id text[],
    e_step bigint[],
    e_header bytea[],
    e_salt bytea[],
    e_payload_hash bytea[],
    b_event bigint[],
    b_hash text[],
    x_write bigint[],
    x_stream text[],
    x_version bigint[]
)
RETURNS TABLE (
    status text,
    place bigint,
    there bigint,
    versions bigint[],
    last_position bigint,
    recorded_us bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    head bigint;
    batch_us bigint := now_us();
    s_id bigint[];
BEGIN
    PERFORM lock_log(of_log);
    SELECT e.position INTO head FROM events e ORDER BY e.position DESC LIMIT 1;
    head := coalesce(head, 0);
    SELECT array_agg(s.id ORDER BY asked.n) INTO s_id
    FROM unnest(s_name) WITH ORDINALITY AS asked (name, n)
    LEFT JOIN streams s ON s.name = asked.name;
    INSERT INTO events (
        position, stream, version, seq, step, type, schema, occurred_us, recorded_us,
        epoch, actor, correlation_id, causation_id, attrs, payload, salt, payload_hash,
        hash
    )
    SELECT head + e, s_id[w_stream[e_write[e]]], w_expected[e_write[e]] + e_seq[e] + 1, e_seq[e],
        e_step[e], e_type[e], e_schema[e], e_occurred_us[e], batch_us, w_epoch[e_write[e]],
        e_actor[e], e_correlation_id[e], e_causation_id[e], e_attrs[e], e_payload[e], e_salt[e],
        e_payload_hash[e], e_payload_hash[e]
    FROM generate_series(1, cardinality(e_type)) AS e;
    UPDATE streams s SET version = m.expected + m.events
    FROM unnest(w_stream, w_expected, w_events) AS m (stream, expected, events)
    WHERE s.id = s_id[m.stream];
    PERFORM pg_notify('cueline_' || of_log, (head + cardinality(e_type))::text);
    RETURN QUERY SELECT 'appended', NULL::bigint, NULL::bigint, ARRAY[m.expected + m.events],
        head + m.n, batch_us
    FROM unnest(w_expected, w_events) WITH ORDINALITY AS m (expected, events, n);
END $$;
