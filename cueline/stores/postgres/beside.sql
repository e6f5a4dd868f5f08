-- What is stored beside a log. After a crash of the server, and on a standby, the unlogged tables
-- are empty, and are filled again.

-- It is logged: a runner that was there and is not there any more has left, and its calls ended.
CREATE TABLE presence (
    incarnation text PRIMARY KEY,
    role text NOT NULL,
    machine text NOT NULL,
    boot_id text NOT NULL,
    pid bigint NOT NULL,
    process_started bigint NOT NULL,
    pid_namespace text NOT NULL,
    address text NOT NULL,
    token text NOT NULL,
    beat_us bigint NOT NULL
) WITH (fillfactor = 50);

-- What is read of it: readers are not shown the token, by which one hears what models say.
CREATE VIEW present AS SELECT incarnation, role, machine, boot_id, pid, process_started,
    pid_namespace, address,
    CASE WHEN has_table_privilege('presence'::regclass, 'INSERT') THEN token ELSE '' END AS token,
    beat_us
FROM presence;

CREATE UNLOGGED TABLE snapshots (
    stream text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    content bytea NOT NULL,
    chunk bytea NOT NULL,
    PRIMARY KEY (stream, version)
);

CREATE UNLOGGED TABLE sources (
    source text COLLATE "C" NOT NULL,
    stream text COLLATE "C" NOT NULL,
    PRIMARY KEY (source, stream)
);

-- The description of the running `cueline up`.
CREATE TABLE up (
    id integer PRIMARY KEY CHECK (id = 1),
    description text NOT NULL
);
