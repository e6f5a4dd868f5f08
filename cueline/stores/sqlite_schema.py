"""The tables of the log's file."""

FORMAT = 1
"""The format of the file. A newer format is refused; only a command upgrades an older one."""

SCHEMA = """
CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    format INTEGER NOT NULL,
    log_id TEXT NOT NULL,
    created_us INTEGER NOT NULL
) STRICT;

CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    category TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 0 CHECK (version >= 0),
    epoch INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    owner TEXT,
    head_hash BLOB NOT NULL CHECK (length(head_hash) = 32),
    -- What a fork goes on from.
    parent INTEGER REFERENCES streams (id),
    parent_version INTEGER,
    CHECK ((parent IS NULL) = (parent_version IS NULL))
) STRICT;

CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    seq INTEGER NOT NULL,
    step INTEGER NOT NULL,
    type TEXT NOT NULL,
    schema INTEGER NOT NULL,
    occurred_us INTEGER NOT NULL,
    recorded_us INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    actor TEXT NOT NULL,
    correlation_id TEXT,
    causation_id TEXT,
    attrs TEXT,
    payload BLOB,
    salt BLOB,
    payload_hash BLOB NOT NULL,
    hash BLOB NOT NULL,
    UNIQUE (stream, version),
    CHECK ((payload IS NULL) = (salt IS NULL))
) STRICT;

-- One row an append that has a key: where its events begin, and how many there are.
CREATE TABLE appends (
    stream INTEGER NOT NULL,
    key TEXT NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL CHECK (count >= 1),
    PRIMARY KEY (stream, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    content BLOB NOT NULL,
    put_us INTEGER NOT NULL
) STRICT;

CREATE TABLE blob_refs (
    hash TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (hash, position)
) STRICT, WITHOUT ROWID;

-- The triggers are a guard rail; the hash chain is the protection.
CREATE TRIGGER events_never_change BEFORE UPDATE ON events
WHEN NOT (
    new.payload IS NULL AND new.salt IS NULL
    AND new.position = old.position AND new.stream = old.stream
    AND new.version = old.version AND new.seq = old.seq AND new.step = old.step
    AND new.type = old.type AND new.schema = old.schema
    AND new.occurred_us = old.occurred_us AND new.recorded_us = old.recorded_us
    AND new.epoch = old.epoch AND new.actor = old.actor
    AND new.correlation_id IS old.correlation_id
    AND new.causation_id IS old.causation_id AND new.attrs IS old.attrs
    AND new.payload_hash = old.payload_hash AND new.hash = old.hash
)
BEGIN SELECT raise(ABORT, 'events are append-only; a payload may be emptied'); END;

CREATE TRIGGER events_never_go BEFORE DELETE ON events
BEGIN SELECT raise(ABORT, 'events are append-only'); END;

CREATE TRIGGER appends_never_change BEFORE UPDATE ON appends
BEGIN SELECT raise(ABORT, 'appends are append-only'); END;

CREATE TRIGGER appends_never_go BEFORE DELETE ON appends
BEGIN SELECT raise(ABORT, 'appends are append-only'); END;

CREATE TRIGGER streams_never_go BEFORE DELETE ON streams
BEGIN SELECT raise(ABORT, 'streams are append-only'); END;

CREATE TRIGGER streams_keep_their_name BEFORE UPDATE OF id, name, category ON streams
BEGIN SELECT raise(ABORT, 'a stream keeps its name'); END;

CREATE TRIGGER blobs_never_change BEFORE UPDATE OF hash, content ON blobs
BEGIN SELECT raise(ABORT, 'a blob keeps its content'); END;
"""
