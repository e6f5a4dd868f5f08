-- The tables of a log in PostgreSQL, and the functions that alone write to them.
--
-- It runs once, with the search path set to the log's schema. All writes take the log's lock
-- first: a transaction is one call of a function, so nobody holds it while a client thinks.

CREATE TABLE meta (
    id integer PRIMARY KEY CHECK (id = 1),
    format integer NOT NULL,
    log_id text NOT NULL,
    created_us bigint NOT NULL
);

CREATE TABLE streams (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name text COLLATE "C" NOT NULL UNIQUE,
    category text COLLATE "C" NOT NULL,
    version bigint NOT NULL DEFAULT 0 CHECK (version >= 0),
    epoch bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    owner text,
    head_hash bytea NOT NULL CHECK (octet_length(head_hash) = 32),
    -- What a fork goes on from.
    parent bigint REFERENCES streams (id),
    parent_version bigint,
    CHECK ((parent IS NULL) = (parent_version IS NULL))
) WITH (fillfactor = 70);

CREATE TABLE events (
    position bigint PRIMARY KEY,
    stream bigint NOT NULL,
    version bigint NOT NULL CHECK (version >= 1),
    seq bigint NOT NULL,
    step bigint NOT NULL,
    type text NOT NULL,
    schema bigint NOT NULL,
    occurred_us bigint NOT NULL,
    recorded_us bigint NOT NULL,
    epoch bigint NOT NULL,
    actor text NOT NULL,
    correlation_id text,
    causation_id text,
    attrs text,
    payload bytea,
    salt bytea,
    payload_hash bytea NOT NULL,
    hash bytea NOT NULL,
    UNIQUE (stream, version),
    CHECK ((payload IS NULL) = (salt IS NULL))
) WITH (autovacuum_freeze_min_age = 0, autovacuum_vacuum_insert_scale_factor = 0.05);
-- Payloads are JSON of some kilobytes at most: compressing them would take longer than writing.
ALTER TABLE events ALTER payload SET STORAGE EXTERNAL;

-- One row an append that has a key: where its events begin, and how many there are.
CREATE TABLE appends (
    stream bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    first bigint NOT NULL,
    count bigint NOT NULL CHECK (count >= 1),
    PRIMARY KEY (stream, key)
);

CREATE TABLE blobs (
    hash text COLLATE "C" PRIMARY KEY,
    content bytea NOT NULL,
    put_us bigint NOT NULL
);
ALTER TABLE blobs ALTER content SET STORAGE EXTERNAL;

CREATE TABLE blob_refs (
    hash text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (hash, position)
);
CREATE INDEX blob_refs_of ON blob_refs (position);

-- The triggers are a guard rail for those who own the tables; the hash chain is the protection.
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% are append-only', tg_table_name USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION refuse_all_but_emptying() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.payload IS NULL AND new.salt IS NULL
        AND (old.position, old.stream, old.version, old.seq, old.step, old.type, old.schema,
            old.occurred_us, old.recorded_us, old.epoch, old.actor, old.correlation_id,
            old.causation_id, old.attrs, old.payload_hash, old.hash)
        IS NOT DISTINCT FROM
            (new.position, new.stream, new.version, new.seq, new.step, new.type, new.schema,
            new.occurred_us, new.recorded_us, new.epoch, new.actor, new.correlation_id,
            new.causation_id, new.attrs, new.payload_hash, new.hash)
    THEN
        RETURN new;
    END IF;
    RAISE EXCEPTION 'events are append-only; a payload may be emptied'
        USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER events_never_change BEFORE UPDATE ON events
FOR EACH ROW EXECUTE FUNCTION refuse_all_but_emptying();
CREATE TRIGGER events_never_go BEFORE DELETE ON events FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER events_stay BEFORE TRUNCATE ON events EXECUTE FUNCTION refuse();
CREATE TRIGGER appends_never_change BEFORE UPDATE OR DELETE ON appends
FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER appends_stay BEFORE TRUNCATE ON appends EXECUTE FUNCTION refuse();
CREATE TRIGGER streams_never_go BEFORE DELETE ON streams FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER streams_stay BEFORE TRUNCATE ON streams EXECUTE FUNCTION refuse();
CREATE TRIGGER streams_keep_their_name BEFORE UPDATE OF id, name, category ON streams
FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER blobs_never_change BEFORE UPDATE OF hash, content ON blobs
FOR EACH ROW EXECUTE FUNCTION refuse();

-- Whoever has the lock is the only writer, and what was committed before is visible to its next
-- statement. It ends with the commit, after which the events are durable and visible: positions
-- are dense, and in the order of commits.
CREATE FUNCTION lock_log(of_log text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the log is written in read committed transactions only';
    END IF;
    PERFORM pg_advisory_xact_lock((4243::bigint << 32) + 'events'::regclass::oid::bigint);
    IF NOT EXISTS (SELECT FROM meta WHERE log_id = of_log) THEN
        RAISE EXCEPTION 'it is another log than before' USING ERRCODE = 'CL001';
    END IF;
END $$;

CREATE FUNCTION make_stream(named text, in_category text) RETURNS bigint LANGUAGE sql AS $$
    INSERT INTO streams (name, category, head_hash)
    VALUES (named, in_category, decode(repeat('00', 32), 'hex')) RETURNING id
$$;

CREATE FUNCTION hash_at(in_stream bigint, at_version bigint) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
    found_hash bytea;
BEGIN
    LOOP
        SELECT hash INTO found_hash FROM events WHERE stream = in_stream AND version = at_version;
        IF FOUND THEN
            RETURN found_hash;
        END IF;
        SELECT parent INTO in_stream FROM streams WHERE id = in_stream;
        IF in_stream IS NULL THEN
            RAISE EXCEPTION 'version % of a parent is missing', at_version;
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION now_us() RETURNS bigint LANGUAGE sql AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- The streams of a batch (s_), each once; its appends (a_), each with writes to streams (w_), each
-- with events (e_); the blobs that events name (b_), and the events that writes empty (x_). An
-- array has one element for each of its kind, in order; streams, writes and events are named by
-- their places, from 1. Each append succeeds or is refused by itself; see `EventStore.append`.
--
-- A statement takes as long as a dozen other steps. So streams, keys and blobs are looked up once
-- for the batch, and what was appended is inserted once, at its end; or before, for what has to
-- look at events of the same batch.
CREATE FUNCTION append(
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
    -- Of a refused append: which of its writes, or of the blobs it names, and what is there.
    place bigint,
    there bigint,
    versions bigint[],
    last_position bigint,
    recorded_us bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
-- The tables grow while plans are kept: those by an index stay right, for any batch.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    last_us bigint;
    batch_us bigint;
    head bigint;
    began bigint;
    genesis CONSTANT bytea := decode(repeat('00', 32), 'hex');
    a bigint := 1;
    w_first bigint := 1;
    w_last bigint;
    e_first bigint := 1;
    e_last bigint;
    b_first bigint := 1;
    b_next bigint;
    n bigint;
    s bigint;
    base bigint;
    found_hash bytea;
    -- Of the streams, as the appends so far leave them; and what the writes of an append reach.
    s_id bigint[];
    s_version bigint[];
    s_epoch bigint[];
    s_hash bytea[];
    s_moved boolean[] := array_fill(false, ARRAY[cardinality(s_name)]);
    s_reached bigint[] := '{}';
    -- Of the appends whose key is known: where their events are.
    a_first bigint[] := '{}';
    a_count bigint[] := '{}';
    b_missing boolean[];
    -- Of those that succeed.
    a_begin bigint[] := '{}';
    e_position bigint[] := '{}';
    e_version bigint[] := '{}';
    e_hash bytea[] := '{}';
    -- What was inserted; and the last write whose events to be emptied are emptied after that.
    insert_now boolean := false;
    inserted bigint;
    a_inserted bigint := 0;
    e_inserted bigint := 0;
    b_inserted bigint := 0;
    x_next bigint := 1;
    x_last bigint := 0;
    first_position bigint;
    first_count bigint;
    ends bigint[];
    emptied bigint;
BEGIN
    PERFORM lock_log(of_log);
    SELECT e.position, e.recorded_us INTO head, last_us FROM events e
    ORDER BY e.position DESC LIMIT 1;
    head := coalesce(head, 0);
    began := head;
    inserted := head;
    last_us := coalesce(last_us, 0);
    IF last_us < 0 OR last_us >= 253402214400000000 THEN
        RAISE EXCEPTION '%', head USING ERRCODE = 'CL002';
    END IF;
    batch_us := greatest(coalesce(clock_us, now_us()), last_us);

    SELECT array_agg(s.id ORDER BY asked.n), array_agg(coalesce(s.version, 0) ORDER BY asked.n),
        array_agg(coalesce(s.epoch, 0) ORDER BY asked.n),
        array_agg(coalesce(s.head_hash, genesis) ORDER BY asked.n)
    INTO s_id, s_version, s_epoch, s_hash
    FROM unnest(s_name) WITH ORDINALITY AS asked (name, n)
    LEFT JOIN streams s ON s.name = asked.name;
    IF cardinality(array_remove(a_key, NULL)) > 0 THEN
        SELECT array_agg(p.first ORDER BY asked.n), array_agg(p.count ORDER BY asked.n)
        INTO a_first, a_count
        FROM unnest(a_key, a_stream) WITH ORDINALITY AS asked (key, stream, n)
        LEFT JOIN appends p ON p.stream = s_id[asked.stream] AND p.key = asked.key;
    END IF;

    <<batch>>
    LOOP
        IF insert_now OR a > cardinality(a_key) THEN
            IF inserted < head THEN
                INSERT INTO events (
                    position, stream, version, seq, step, type, schema, occurred_us, recorded_us,
                    epoch, actor, correlation_id, causation_id, attrs, payload, salt, payload_hash,
                    hash
                )
                SELECT e_position[e], s_id[w_stream[e_write[e]]], e_version[e], e_seq[e],
                    e_step[e], e_type[e], e_schema[e], e_occurred_us[e], batch_us,
                    s_epoch[w_stream[e_write[e]]], e_actor[e], e_correlation_id[e],
                    e_causation_id[e], e_attrs[e], e_payload[e], e_salt[e], e_payload_hash[e],
                    e_hash[e]
                FROM generate_series(e_inserted + 1, e_first - 1) AS e
                WHERE e_position[e] IS NOT NULL;
                UPDATE streams s SET version = m.version, head_hash = m.hash
                FROM unnest(s_id, s_version, s_hash, s_moved) AS m (id, version, hash, moved)
                WHERE s.id = m.id AND m.moved;
                IF cardinality(a_begin) > 0 THEN
                    INSERT INTO appends (stream, key, first, count)
                    SELECT s_id[a_stream[k]], a_key[k], a_begin[k], a_count[k]
                    FROM generate_series(a_inserted + 1, a - 1) AS k WHERE a_begin[k] IS NOT NULL;
                END IF;
                IF b_inserted + 1 < b_first THEN
                    INSERT INTO blob_refs (hash, position)
                    SELECT b_hash[b], e_position[b_event[b]]
                    FROM generate_series(b_inserted + 1, b_first - 1) AS b
                    WHERE e_position[b_event[b]] IS NOT NULL ON CONFLICT DO NOTHING;
                END IF;
                inserted := head;
            END IF;
            insert_now := false;
            a_inserted := a - 1;
            e_inserted := e_first - 1;
            b_inserted := b_first - 1;
            WHILE x_write[x_next] <= x_last LOOP
                UPDATE events e SET payload = NULL, salt = NULL
                WHERE e.stream = (SELECT id FROM streams WHERE name = x_stream[x_next])
                    AND e.version = x_version[x_next]
                RETURNING e.position INTO emptied;
                WITH gone AS (DELETE FROM blob_refs WHERE position = emptied RETURNING hash)
                DELETE FROM blobs WHERE hash IN (SELECT hash FROM gone) AND NOT EXISTS (
                    SELECT FROM blob_refs r WHERE r.hash = blobs.hash AND r.position <> emptied
                );
                b_missing := NULL;
                x_next := x_next + 1;
            END LOOP;
            EXIT WHEN a > cardinality(a_key);
        END IF;

        w_last := w_first + a_writes[a] - 1;
        e_last := e_first - 1;
        status := NULL;

        -- First the epochs (I3): of a stream that was acquired, its owner's, which knows the
        -- version; else none.
        FOR w IN w_first .. w_last LOOP
            s := w_stream[w];
            s_reached[s] := NULL;
            e_last := e_last + w_events[w];
            IF status IS NULL AND NOT (
                CASE s_epoch[s]
                    WHEN 0 THEN w_epoch[w] IS NULL
                    ELSE coalesce(w_epoch[w] = s_epoch[s], false) AND w_expected[w] <> -1
                END
            ) THEN
                status := 'fenced';
                place := w - w_first + 1;
                there := s_epoch[s];
            END IF;
        END LOOP;

        -- Then the versions.
        IF status IS NULL THEN
            FOR w IN w_first .. w_last LOOP
                s := w_stream[w];
                base := s_reached[s];
                IF base IS NULL THEN
                    base := s_version[s];
                    IF w_parent[w] IS NOT NULL THEN
                        IF base <> 0 THEN
                            status := 'begun';
                        ELSE
                            base := s_version[w_parent[w]];
                            IF w_parent_version[w] NOT BETWEEN 1 AND base THEN
                                status := 'parent';
                            END IF;
                        END IF;
                        IF status IS NOT NULL THEN
                            place := w - w_first + 1;
                            there := base;
                            EXIT;
                        END IF;
                        base := w_parent_version[w];
                        IF inserted < head THEN
                            insert_now := true;
                            CONTINUE batch;
                        END IF;
                    END IF;
                END IF;
                IF w_expected[w] NOT IN (base, -1) THEN
                    status := 'version';
                    place := w - w_first + 1;
                    there := base;
                    EXIT;
                END IF;
                s_reached[s] := base + w_events[w];
            END LOOP;
        END IF;

        -- Then the blobs.
        b_next := b_first;
        WHILE b_next <= cardinality(b_event) AND b_event[b_next] <= e_last LOOP
            IF b_missing IS NULL THEN
                SELECT array_agg(
                    NOT EXISTS (SELECT FROM blobs WHERE blobs.hash = asked.hash) ORDER BY asked.n
                )
                INTO b_missing FROM unnest(b_hash) WITH ORDINALITY AS asked (hash, n);
            END IF;
            IF status IS NULL AND b_missing[b_next] THEN
                status := 'blob';
                place := b_next - b_first + 1;
            END IF;
            b_next := b_next + 1;
        END LOOP;

        -- The key comes before all of these. An owner's append has none: it is found by its epoch
        -- and version, if anything else is there.
        first_position := a_first[a];
        first_count := a_count[a];
        IF status IS NOT NULL AND a_key[a] IS NULL THEN
            IF inserted < head THEN
                insert_now := true;
                CONTINUE;
            END IF;
            SELECT e.position, coalesce(
                (
                    SELECT next.position FROM events next
                    WHERE next.position > e.position AND next.seq = 0
                    ORDER BY next.position LIMIT 1
                ),
                head + 1
            ) - e.position
            INTO first_position, first_count
            FROM events e
            WHERE e.stream = s_id[a_stream[a]] AND e.version = w_expected[w_first] + 1
                AND e.epoch = w_epoch[w_first] AND e.seq = 0;
        END IF;

        IF first_position IS NOT NULL THEN
            -- Redacted content cannot be compared any more, and counts as equal.
            SELECT count(*) INTO n FROM events e
            WHERE e.position BETWEEN first_position AND first_position + first_count - 1
                AND e.stream = s_id[w_stream[e_write[e_first + e.position - first_position]]]
                AND e.type = e_type[e_first + e.position - first_position]
                AND e.schema = e_schema[e_first + e.position - first_position]
                AND coalesce(e.payload = e_payload[e_first + e.position - first_position], true);
            IF first_count <> e_last - e_first + 1 OR n <> first_count THEN
                status := 'reused';
            ELSE
                ends := '{}';
                last_position := first_position - 1;
                FOR w IN w_first .. w_last LOOP
                    last_position := last_position + w_events[w];
                    ends := ends || last_position;
                END LOOP;
                SELECT array_agg(e.version ORDER BY e.position) INTO versions FROM events e
                WHERE e.position = ANY (ends);
                -- That of the first time.
                SELECT e.recorded_us INTO recorded_us FROM events e
                WHERE e.position = last_position;
                status := 'appended';
            END IF;
        ELSIF status IS NULL THEN
            versions := '{}';
            n := 0;
            FOR w IN w_first .. w_last LOOP
                s := w_stream[w];
                IF s_id[s] IS NULL THEN
                    INSERT INTO streams (name, category, head_hash)
                    VALUES (s_name[s], s_category[s], genesis) RETURNING id INTO base;
                    s_id[s] := base;
                END IF;
                base := s_version[s];
                found_hash := s_hash[s];
                IF w_parent[w] IS NOT NULL AND base = 0 THEN
                    base := w_parent_version[w];
                    found_hash := hash_at(s_id[w_parent[w]], base);
                    UPDATE streams SET parent = s_id[w_parent[w]], parent_version = base
                    WHERE id = s_id[s];
                END IF;
                FOR e IN e_first + n .. e_first + n + w_events[w] - 1 LOOP
                    base := base + 1;
                    head := head + 1;
                    -- See `chain.link`; the header's end is made by the client.
                    found_hash := sha256(
                        found_hash
                        || convert_to(
                            'cueline 1 ' || base || ' ' || e_schema[e] || ' ' || e_occurred_us[e]
                            || ' ' || batch_us || ' ' || s_epoch[s] || ' ' || e_step[e] || ' '
                            || e_seq[e] || ' ',
                            'UTF8'
                        )
                        || e_header[e] || e_payload_hash[e]
                    );
                    e_position[e] := head;
                    e_version[e] := base;
                    e_hash[e] := found_hash;
                END LOOP;
                n := n + w_events[w];
                s_version[s] := base;
                s_hash[s] := found_hash;
                s_moved[s] := true;
                versions := versions || base;
            END LOOP;
            IF a_key[a] IS NOT NULL THEN
                a_begin[a] := e_position[e_first];
                a_count[a] := n;
            END IF;
            WHILE x_write[x_next] < w_first LOOP
                x_next := x_next + 1;
            END LOOP;
            IF x_write[x_next] <= w_last THEN
                x_last := w_last;
                insert_now := true;
            END IF;
            status := 'appended';
            last_position := head;
            recorded_us := batch_us;
        END IF;
        RETURN NEXT;
        a := a + 1;
        w_first := w_last + 1;
        e_first := e_last + 1;
        b_first := b_next;
    END LOOP;
    -- A hint for those who follow; they also look by themselves.
    IF head > began THEN
        PERFORM pg_notify('cueline_' || of_log, head::text);
    END IF;
END $$;

-- Returns the stream's row and its last event, so that the client can say what is wrong.
CREATE FUNCTION acquire(
    of_log text, of_stream text, in_category text, by_owner text, seen_epoch bigint
)
RETURNS TABLE (
    status text,
    stream bigint,
    version bigint,
    epoch bigint,
    hash bytea,
    owner text,
    last_version bigint,
    last_position bigint,
    last_epoch bigint,
    last_hash bytea
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
    PERFORM lock_log(of_log);
    SELECT s.id, s.version, s.epoch, s.head_hash, s.owner INTO stream, version, epoch, hash, owner
    FROM streams s WHERE s.name = of_stream;
    epoch := coalesce(epoch, 0);
    IF epoch <> seen_epoch THEN
        status := 'fenced';
        RETURN NEXT;
        RETURN;
    END IF;
    IF stream IS NULL THEN
        stream := make_stream(of_stream, in_category);
        version := 0;
        hash := decode(repeat('00', 32), 'hex');
    END IF;
    SELECT e.version, e.position, e.epoch, e.hash
    INTO last_version, last_position, last_epoch, last_hash
    FROM events e WHERE e.stream = acquire.stream ORDER BY e.version DESC LIMIT 1;
    IF coalesce(last_version, 0) <> version
        OR coalesce(last_hash, decode(repeat('00', 32), 'hex')) <> hash
        OR coalesce(last_epoch, 0) > epoch
    THEN
        status := 'corrupt';
        RETURN NEXT;
        RETURN;
    END IF;
    UPDATE streams SET epoch = seen_epoch + 1, owner = by_owner WHERE id = stream;
    status := 'acquired';
    epoch := seen_epoch + 1;
    RETURN NEXT;
END $$;

CREATE FUNCTION put_blob(of_log text, put_content bytea, clock_us bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    put_hash text := encode(sha256(put_content), 'hex');
    put_at bigint := coalesce(clock_us, now_us());
BEGIN
    IF NOT EXISTS (SELECT FROM meta WHERE log_id = of_log) THEN
        RAISE EXCEPTION 'it is another log than before' USING ERRCODE = 'CL001';
    END IF;
    INSERT INTO blobs (hash, content, put_us) VALUES (put_hash, put_content, put_at)
    ON CONFLICT (hash) DO UPDATE SET put_us = put_at;
    RETURN put_hash;
END $$;

-- Deletes blobs without references that were stored before then.
CREATE FUNCTION collect_blobs(of_log text, rested_us bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    gone bigint;
BEGIN
    PERFORM lock_log(of_log);
    DELETE FROM blobs WHERE put_us <= rested_us
        AND NOT EXISTS (SELECT FROM blob_refs r WHERE r.hash = blobs.hash);
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;
