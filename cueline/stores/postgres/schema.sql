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

-- Appends (a_), each with writes to streams (w_), each with events (e_); the blobs that events
-- name (b_), and the events that writes empty (x_). Each array has one element for each of its
-- kind, in order. Each append succeeds or is refused by itself; see `EventStore.append`.
CREATE FUNCTION append(
    of_log text,
    clock_us bigint,
    a_key text[],
    a_writes bigint[],
    w_stream text[],
    w_category text[],
    w_expected bigint[],
    w_epoch bigint[],
    w_parent text[],
    w_parent_version bigint[],
    w_events bigint[],
    e_write bigint[],
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
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    last_us bigint;
    head bigint;
    began bigint;
    genesis CONSTANT bytea := decode(repeat('00', 32), 'hex');
    w_last bigint := 0;
    w_first bigint;
    e_last bigint := 0;
    e_first bigint;
    same bigint;
    base bigint;
    n bigint;
    next_event bigint;
    -- Of the streams of an append, by the write that comes to each first.
    s_write bigint[];
    s_id bigint[];
    s_version bigint[];
    s_epoch bigint[];
    s_hash bytea[];
    s_reached bigint[];
    found_id bigint;
    found_version bigint;
    found_epoch bigint;
    found_hash bytea;
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
    last_us := coalesce(last_us, 0);
    IF last_us < 0 OR last_us >= 253402214400000000 THEN
        RAISE EXCEPTION '%', head USING ERRCODE = 'CL002';
    END IF;
    recorded_us := greatest(coalesce(clock_us, now_us()), last_us);

    FOR a IN 1 .. cardinality(a_key) LOOP
        w_first := w_last + 1;
        w_last := w_last + a_writes[a];
        e_first := e_last + 1;
        status := NULL;
        s_write := '{}';
        s_id := '{}';
        s_version := '{}';
        s_epoch := '{}';
        s_hash := '{}';

        -- First the epochs (I3): of a stream that was acquired, its owner's, which knows the
        -- version; else none.
        FOR w IN w_first .. w_last LOOP
            e_last := e_last + w_events[w];
            same := NULL;
            FOR k IN w_first .. w - 1 LOOP
                IF w_stream[k] = w_stream[w] THEN
                    same := s_write[k - w_first + 1];
                    EXIT;
                END IF;
            END LOOP;
            IF same IS NULL THEN
                SELECT id, version, epoch, head_hash
                INTO found_id, found_version, found_epoch, found_hash
                FROM streams WHERE name = w_stream[w];
                same := w - w_first + 1;
                s_id[same] := found_id;
                s_version[same] := coalesce(found_version, 0);
                s_epoch[same] := coalesce(found_epoch, 0);
                s_hash[same] := coalesce(found_hash, genesis);
            END IF;
            s_write[w - w_first + 1] := same;
            IF status IS NULL AND NOT (
                CASE s_epoch[same]
                    WHEN 0 THEN w_epoch[w] IS NULL
                    ELSE coalesce(w_epoch[w] = s_epoch[same], false) AND w_expected[w] <> -1
                END
            ) THEN
                status := 'fenced';
                place := w - w_first + 1;
                there := s_epoch[same];
            END IF;
        END LOOP;

        -- Then the versions.
        IF status IS NULL THEN
            s_reached := '{}';
            FOR w IN w_first .. w_last LOOP
                same := s_write[w - w_first + 1];
                base := s_reached[same];
                IF base IS NULL THEN
                    base := s_version[same];
                    IF w_parent[w] IS NOT NULL THEN
                        IF base <> 0 THEN
                            status := 'begun';
                        ELSE
                            SELECT version INTO base FROM streams WHERE name = w_parent[w];
                            base := coalesce(base, 0);
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
                    END IF;
                END IF;
                IF w_expected[w] NOT IN (base, -1) THEN
                    status := 'version';
                    place := w - w_first + 1;
                    there := base;
                    EXIT;
                END IF;
                s_reached[same] := base + w_events[w];
            END LOOP;
        END IF;

        -- Then the blobs.
        IF status IS NULL AND cardinality(b_event) > 0 THEN
            SELECT b.place INTO place
            FROM (
                SELECT named.hash, row_number() OVER (ORDER BY named.n) AS place
                FROM unnest(b_event, b_hash) WITH ORDINALITY AS named (event, hash, n)
                WHERE named.event BETWEEN e_first AND e_last
            ) AS b
            WHERE NOT EXISTS (SELECT FROM blobs WHERE blobs.hash = b.hash)
            ORDER BY b.place LIMIT 1;
            IF FOUND THEN
                status := 'blob';
            END IF;
        END IF;

        -- The key comes before all of these, but it is looked up only where one failed: claiming
        -- it says whether it is new.
        first_position := NULL;
        IF status IS NULL AND a_key[a] IS NOT NULL THEN
            IF s_id[1] IS NULL THEN
                s_id[1] := make_stream(w_stream[w_first], w_category[w_first]);
            END IF;
            INSERT INTO appends (stream, key, first, count)
            VALUES (s_id[1], a_key[a], head + 1, e_last - e_first + 1) ON CONFLICT DO NOTHING;
            IF NOT FOUND THEN
                status := 'reused';
            END IF;
        END IF;
        IF status IS NOT NULL THEN
            IF a_key[a] IS NOT NULL THEN
                SELECT first, count INTO first_position, first_count FROM appends
                WHERE stream = s_id[1] AND key = a_key[a];
            ELSE
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
                WHERE e.stream = s_id[1] AND e.version = w_expected[w_first] + 1
                    AND e.epoch = w_epoch[w_first] AND e.seq = 0;
            END IF;
        END IF;

        IF first_position IS NOT NULL THEN
            -- Redacted content cannot be compared any more, and counts as equal.
            SELECT count(*) INTO n FROM events e JOIN streams s ON s.id = e.stream
            WHERE e.position BETWEEN first_position AND first_position + first_count - 1
                AND s.name = w_stream[e_write[e_first + e.position - first_position]]
                AND e.type = e_type[e_first + e.position - first_position]
                AND e.schema = e_schema[e_first + e.position - first_position]
                AND coalesce(e.payload = e_payload[e_first + e.position - first_position], true);
            IF first_count <> e_last - e_first + 1 OR n <> first_count THEN
                status := 'reused';
                RETURN NEXT;
                CONTINUE;
            END IF;
            ends := '{}';
            last_position := first_position - 1;
            FOR w IN w_first .. w_last LOOP
                last_position := last_position + w_events[w];
                ends := ends || last_position;
            END LOOP;
            SELECT array_agg(e.version ORDER BY e.position) INTO versions FROM events e
            WHERE e.position = ANY (ends);
            -- That of the first time; the next append has this time's again.
            last_us := recorded_us;
            SELECT e.recorded_us INTO recorded_us FROM events e WHERE e.position = last_position;
            status := 'appended';
            RETURN NEXT;
            recorded_us := last_us;
            CONTINUE;
        END IF;
        IF status IS NOT NULL THEN
            RETURN NEXT;
            CONTINUE;
        END IF;

        n := 0;
        next_event := e_first;
        versions := '{}';
        FOR w IN w_first .. w_last LOOP
            same := s_write[w - w_first + 1];
            IF s_id[same] IS NULL THEN
                s_id[same] := make_stream(w_stream[w], w_category[w]);
            END IF;
            base := s_version[same];
            found_hash := s_hash[same];
            IF w_parent[w] IS NOT NULL AND base = 0 THEN
                SELECT id INTO found_id FROM streams WHERE name = w_parent[w];
                base := w_parent_version[w];
                found_hash := hash_at(found_id, base);
                UPDATE streams SET parent = found_id, parent_version = base WHERE id = s_id[same];
            END IF;
            FOR k IN next_event .. next_event + w_events[w] - 1 LOOP
                base := base + 1;
                head := head + 1;
                -- See `chain.link`; the header's end is made by the client.
                found_hash := sha256(
                    found_hash
                    || convert_to(
                        'cueline 1 ' || base || ' ' || e_schema[k] || ' ' || e_occurred_us[k] || ' '
                        || recorded_us || ' ' || s_epoch[same] || ' ' || e_step[k] || ' ' || n
                        || ' ',
                        'UTF8'
                    )
                    || e_header[k] || e_payload_hash[k]
                );
                INSERT INTO events (
                    position, stream, version, seq, step, type, schema, occurred_us, recorded_us,
                    epoch, actor, correlation_id, causation_id, attrs, payload, salt, payload_hash,
                    hash
                ) VALUES (
                    head, s_id[same], base, n, e_step[k], e_type[k], e_schema[k], e_occurred_us[k],
                    recorded_us, s_epoch[same], e_actor[k], e_correlation_id[k], e_causation_id[k],
                    e_attrs[k], e_payload[k], e_salt[k], e_payload_hash[k], found_hash
                );
                n := n + 1;
            END LOOP;
            next_event := e_first + n;
            UPDATE streams SET version = base, head_hash = found_hash WHERE id = s_id[same];
            s_version[same] := base;
            s_hash[same] := found_hash;
            versions := versions || base;
            IF cardinality(b_event) > 0 THEN
                INSERT INTO blob_refs (hash, position)
                SELECT b.hash, head - n - e_first + 1 + b.event
                FROM unnest(b_event, b_hash) AS b (event, hash)
                WHERE b.event BETWEEN e_first AND e_last AND e_write[b.event] = w
                ON CONFLICT DO NOTHING;
            END IF;
            FOR x IN 1 .. cardinality(x_write) LOOP
                CONTINUE WHEN x_write[x] <> w;
                UPDATE events e SET payload = NULL, salt = NULL
                WHERE e.stream = (SELECT id FROM streams WHERE name = x_stream[x])
                    AND e.version = x_version[x]
                RETURNING e.position INTO emptied;
                WITH gone AS (DELETE FROM blob_refs WHERE position = emptied RETURNING hash)
                DELETE FROM blobs WHERE hash IN (SELECT hash FROM gone) AND NOT EXISTS (
                    SELECT FROM blob_refs r WHERE r.hash = blobs.hash AND r.position <> emptied
                );
            END LOOP;
        END LOOP;
        status := 'appended';
        last_position := head;
        RETURN NEXT;
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
