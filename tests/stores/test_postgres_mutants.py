"""As `test_mutants`: each of these logs in PostgreSQL has one thing wrong."""

import importlib
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from cueline.testing.event_store_appends import AppendContract
from cueline.testing.event_store_blobs import BlobContract
from cueline.testing.event_store_contract import EventStoreContract
from cueline.testing.event_store_emptying import EmptyingContract
from cueline.testing.event_store_epochs import EpochContract
from cueline.testing.event_store_forks import ForkContract
from cueline.testing.event_store_keys import KeyContract
from cueline.testing.event_store_reads import ReadContract
from tests.stores.mutant import ROOT, Mutant, first_failure

SQL = "schema.sql"
MUTANTS = [
    Mutant(
        "the epoch is not checked",
        EpochContract,
        SQL,
        "IF status IS NULL AND NOT (",
        "IF status IS NOT NULL AND NOT (",
    ),
    Mutant(
        "a newer epoch passes",
        EpochContract,
        SQL,
        "coalesce(w_epoch[w] = s_epoch[s]",
        "coalesce(w_epoch[w] >= s_epoch[s]",
    ),
    Mutant("an owner may append anywhere", EpochContract, SQL, " AND w_expected[w] <> -1", ""),
    Mutant(
        "nobody's stream takes any epoch",
        EpochContract,
        SQL,
        "WHEN 0 THEN w_epoch[w] IS NULL",
        "WHEN 0 THEN true",
    ),
    Mutant(
        "the epoch comes before the key",
        KeyContract,
        SQL,
        "        first_position := a_first[a];\n",
        "        first_position := CASE WHEN status IS NULL THEN a_first[a] END;\n",
    ),
    Mutant(
        "any owner's place is this owner's",
        KeyContract,
        SQL,
        "AND e.epoch = w_epoch[w_first] AND e.seq = 0",
        "AND e.seq = 0",
    ),
    Mutant(
        "the middle of an append is an owner's place",
        KeyContract,
        SQL,
        "AND e.epoch = w_epoch[w_first] AND e.seq = 0",
        "AND e.epoch = w_epoch[w_first]",
    ),
    Mutant(
        "an owner's append ends with the log",
        KeyContract,
        SQL,
        "WHERE next.position > e.position AND next.seq = 0",
        "WHERE false",
    ),
    Mutant(
        "the version is not checked",
        AppendContract,
        SQL,
        "IF w_expected[w] NOT IN (base, -1) THEN",
        "IF false THEN",
    ),
    Mutant(
        "a version from the past passes",
        AppendContract,
        SQL,
        "IF w_expected[w] NOT IN (base, -1) THEN",
        "IF w_expected[w] > base THEN",
    ),
    Mutant(
        "only the first write is checked",
        AppendContract,
        SQL,
        "                s_reached[s] := base + w_events[w];\n",
        "                EXIT;\n",
    ),
    Mutant(
        "a prefix of the first content passes",
        KeyContract,
        SQL,
        "IF first_count <> e_last - e_first + 1 OR n <> first_count THEN",
        "IF n <> least(first_count, e_last - e_first + 1) THEN",
    ),
    Mutant(
        "another payload passes",
        KeyContract,
        SQL,
        "AND coalesce(e.payload = e_payload[e_first + e.position - first_position], true)",
        "",
    ),
    Mutant(
        "another type passes",
        KeyContract,
        SQL,
        "AND e.type = e_type[e_first + e.position - first_position]",
        "",
    ),
    Mutant(
        "another stream passes",
        KeyContract,
        SQL,
        "AND e.stream = s_id[w_stream[e_write[e_first + e.position - first_position]]]",
        "",
    ),
    Mutant(
        "asking again returns the end of the log",
        KeyContract,
        SQL,
        "                status := 'appended';\n            END IF;",
        "                status := 'appended';\n                last_position := head;\n"
        "            END IF;",
    ),
    Mutant(
        "the chain head is stale",
        AppendContract,
        SQL,
        "SET version = m.version, head_hash = m.hash",
        "SET version = m.version",
    ),
    Mutant(
        "the chain begins anew in each append",
        AppendContract,
        SQL,
        "found_hash := s_hash[s];",
        "found_hash := genesis;",
    ),
    Mutant(
        "the payload is not salted",
        ReadContract,
        "writer.py",
        "[urandom(SALT_BYTES) for",
        "[bytes(SALT_BYTES) for",
    ),
    Mutant(
        "a position is left out",
        AppendContract,
        SQL,
        "            last_position := head;\n",
        "            last_position := head;\n            head := head + 1;\n",
    ),
    Mutant(
        "a stream that comes twice is two streams",
        AppendContract,
        "writer.py",
        "streams.setdefault(name, len(streams) + 1)",
        "streams.setdefault(name, 0) and streams[name]",
    ),
    Mutant(
        "the recorded time follows the clock back",
        AppendContract,
        SQL,
        "greatest(coalesce(clock_us, now_us()), last_us)",
        "coalesce(clock_us, now_us())",
    ),
    Mutant(
        "who acquires is not compared",
        EpochContract,
        SQL,
        "IF epoch <> seen_epoch THEN",
        "IF epoch < seen_epoch THEN",
    ),
    Mutant(
        "the blobs are not looked for",
        BlobContract,
        SQL,
        "IF status IS NULL AND b_missing[b_next] THEN",
        "IF false THEN",
    ),
    Mutant(
        "which blobs are named is forgotten",
        BlobContract,
        SQL,
        "IF b_inserted + 1 < b_first THEN",
        "IF false THEN",
    ),
    Mutant(
        "putting again does not renew the time",
        BlobContract,
        SQL,
        "DO UPDATE SET put_us = put_at",
        "DO NOTHING",
    ),
    Mutant(
        "a shared blob goes with the first event",
        EmptyingContract,
        SQL,
        "WHERE r.hash = blobs.hash AND r.position <> emptied",
        "WHERE false",
    ),
    Mutant(
        "a fork's chain begins anew",
        ForkContract,
        SQL,
        "found_hash := hash_at(s_id[w_parent[w]], base);",
        "found_hash := genesis;",
    ),
    Mutant(
        "a fork reads all of its parent",
        ForkContract,
        "store.py",
        "until = min(until, base) if base is not None else None",
        "until = None",
    ),
    Mutant(
        "a fork forgets its grandparent",
        ForkContract,
        "store.py",
        "JOIN streams s ON s.id = line.parent",
        "JOIN streams s ON s.id = line.parent AND line.place < 2",
    ),
    Mutant(
        "a text with NUL is sent as it is",
        AppendContract,
        "sql.py",
        'if "\\0" not in text and _MARK not in text:',
        "if True:",
    ),
]


@contextmanager
def grown(mutant, server):
    """Make a copy of the backend with the change, and give what opens its log, emptied."""
    name = f"mutant_{abs(hash(mutant)):x}"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, name)
        shutil.copytree(
            ROOT / "stores" / "postgres", copy, ignore=shutil.ignore_patterns("__pycache__")
        )
        assert (copy / mutant.file).exists()
        for path in copy.iterdir():
            text = path.read_text()
            if path.name == mutant.file:
                assert text.count(mutant.old) == 1, f"{mutant.what}: {text.count(mutant.old)}"
                text = text.replace(mutant.old, mutant.new)
            path.write_text(text.replace("cueline.stores.postgres", name))
        sys.path.insert(0, folder)
        try:
            migrate = importlib.import_module(f"{name}.migration").migrate
            backend = importlib.import_module(f"{name}.backend").PostgresBackend
            yield lambda _, clock: backend(server.empty_log(name[:30], migrate)).open(clock)
        finally:
            sys.path.remove(folder)
            for module in [m for m in sys.modules if m.partition(".")[0] == name]:
                del sys.modules[module]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what.replace(" ", "-"))
def test_a_log_with_one_thing_wrong_is_noticed(mutant, one_server):
    with grown(mutant, one_server) as store:
        assert first_failure(store, mutant.part, 2) is not None


def test_the_log_without_a_change_passes(one_server):
    with grown(Mutant("nothing", EventStoreContract, "", "", ""), one_server) as store:
        assert first_failure(store, EpochContract, 60) is None
