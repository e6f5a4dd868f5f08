"""The contract is worth what it notices: each of these stores has one thing wrong."""

import pytest

from cueline.testing.event_store_appends import AppendContract
from cueline.testing.event_store_blobs import BlobContract
from cueline.testing.event_store_contract import EventStoreContract
from cueline.testing.event_store_epochs import EpochContract
from cueline.testing.event_store_forks import ForkContract
from cueline.testing.event_store_keys import KeyContract
from cueline.testing.event_store_reads import ReadContract
from cueline.testing.wait import PATIENCE_SECONDS
from tests.stores.mutant import Mutant, first_failure, grown

MUTANTS = [
    Mutant(
        "the epoch is not checked",
        EpochContract,
        "append_rules.py",
        "            _check_epoch(write, stream)",
        "            pass",
    ),
    Mutant(
        "a newer epoch passes",
        EpochContract,
        "append_rules.py",
        "allowed = write.epoch == stream.epoch and",
        "allowed = write.epoch is not None and write.epoch >= stream.epoch and",
    ),
    Mutant(
        "an owner may append anywhere",
        EpochContract,
        "append_rules.py",
        " and write.expected_version != ANY",
        "",
    ),
    Mutant(
        "nobody's stream takes any epoch",
        EpochContract,
        "append_rules.py",
        "allowed = write.epoch is None",
        "allowed = True",
    ),
    Mutant(
        "the epoch comes before the key",
        KeyContract,
        "append_rules.py",
        "            first = self._find(writes[0], streams[0], key)\n",
        "            first = None\n",
    ),
    Mutant(
        "any owner's place is this owner's",
        KeyContract,
        "sqlite_tables.py",
        " AND e.epoch = ? AND e.seq = 0\n",
        " AND e.epoch > ? - 9 AND e.seq = 0\n",
    ),
    Mutant(
        "the middle of an append is an owner's place",
        KeyContract,
        "sqlite_tables.py",
        " AND e.epoch = ? AND e.seq = 0\n",
        " AND e.epoch = ?\n",
    ),
    Mutant(
        "an owner's append ends with the log",
        KeyContract,
        "sqlite_tables.py",
        "WHERE position > e.position AND seq = 0 ORDER BY",
        "WHERE false ORDER BY",
    ),
    Mutant(
        "an owner's place is looked for before it is written",
        KeyContract,
        "append_rules.py",
        "        self.finish()  # the earlier append may be waiting in this batch\n        return",
        "        return",
    ),
    Mutant(
        "the version is not checked",
        AppendContract,
        "append_rules.py",
        "not in (version, ANY):",
        "not in (version, ANY) and False:",
    ),
    Mutant(
        "a version from the past passes",
        AppendContract,
        "append_rules.py",
        "if write.expected_version not in (version, ANY):",
        "if write.expected_version > version:",
    ),
    Mutant(
        "only the first write is checked",
        AppendContract,
        "append_rules.py",
        "            versions[write.stream] = version + len(write.events)\n",
        "            break\n",
    ),
    Mutant(
        "the key twice in one batch",
        KeyContract,
        "sqlite_tables.py",
        "return self._ask(_CLAIM, (stream, key, *first)).rowcount == 1",
        "return self._ask(_CLAIM, (stream, key, *first)).rowcount >= 0",
    ),
    Mutant(
        "a prefix of the first content passes",
        KeyContract,
        "append_rules.py",
        "if len(events) != len(drafts) or not all(",
        "if not all(",
    ),
    Mutant(
        "another payload passes",
        KeyContract,
        "append_rules.py",
        "event.payload in (None, draft.payload)",
        "True",
    ),
    Mutant(
        "another stream passes",
        KeyContract,
        "append_rules.py",
        "recorded = (event.stream, event.type, event.schema)",
        "recorded = (stream, event.type, event.schema)",
    ),
    Mutant(
        "asking again appends nothing but returns the end of the log",
        KeyContract,
        "append_rules.py",
        "Appended(tuple(versions), events[-1].position, events[-1].recorded_us)",
        "Appended(tuple(versions), self._position, self._recorded_us)",
    ),
    Mutant(
        "the chain head is stale",
        AppendContract,
        "sqlite_tables.py",
        "[(row.version, bytearray(row.hash), row.id) for row in moved]",
        "[(row.version, GENESIS, row.id) for row in moved]",
    ),
    Mutant(
        "a text that is not there comes back as an empty one",
        ReadContract,
        "sqlite_tables.py",
        "row[column] = 0",
        'row[column] = ""',
    ),
    Mutant(
        "the chain begins anew in each append",
        AppendContract,
        "append_rules.py",
        "            for draft in write.events:\n                self._record",
        "            stream.hash = GENESIS\n"
        "            for draft in write.events:\n                self._record",
    ),
    Mutant(
        "the payload is not salted",
        ReadContract,
        "append_rules.py",
        "salt = urandom(SALT_BYTES)",
        "salt = bytes(SALT_BYTES)",
    ),
    Mutant(
        "a position is left out",
        AppendContract,
        "append_rules.py",
        "        return self._take(writes, streams)",
        "        taken = self._take(writes, streams)\n"
        "        self._position += 1\n        return taken",
    ),
    Mutant(
        "a refused append leaves a gap",
        AppendContract,
        "append_rules.py",
        "                raise\n            return self._again(writes, key, first)",
        "                self._position += 1\n"
        "                raise\n            return self._again(writes, key, first)",
    ),
    Mutant(
        "the recorded time follows the clock back",
        AppendContract,
        "append_rules.py",
        "max(now_us, recorded_us)",
        "now_us",
    ),
    Mutant(
        "a loser takes its neighbours down",
        AppendContract,
        "sqlite_writer.py",
        "            except CuelineError as error:\n",
        "            except ZeroDivisionError as error:\n",
    ),
    Mutant(
        "who acquires is not compared",
        EpochContract,
        "append_rules.py",
        "if stream.epoch != seen_epoch:",
        "if stream.epoch < seen_epoch:",
    ),
    Mutant(
        "the blobs are not looked for",
        BlobContract,
        "append_rules.py",
        "if not self.tables.has_blob(blob):",
        "if False:",
    ),
    Mutant(
        "which blobs are named is forgotten",
        BlobContract,
        "sqlite_tables.py",
        "        if blobs:\n",
        "        if False:\n",
    ),
    Mutant(
        "putting again does not renew the time",
        BlobContract,
        "sqlite_tables.py",
        "if self._ask(_RENEW, (put_us, blob)).rowcount == 0:",
        "if not self.has_blob(blob):",
    ),
    Mutant(
        "a fork's chain begins anew",
        ForkContract,
        "append_rules.py",
        "            stream.hash = parent.hash\n",
        "            pass\n",
    ),
    Mutant(
        "a fork reads all of its parent",
        ForkContract,
        "sqlite_reader.py",
        "until = min(until, base) if base is not None else None",
        "until = None",
    ),
    Mutant(
        "a fork forgets its grandparent",
        ForkContract,
        "sqlite_reader.py",
        "row = self._one(_PARENT, parent) if parent is not None else None",
        "row = self._one(_PARENT, parent) if parent is not None and len(spans) < 2 else None",
    ),
    Mutant(
        "after is inclusive",
        ReadContract,
        "sqlite_reader.py",
        "AND e.version > ?",
        "AND e.version >= ?",
    ),
    Mutant(
        "a page's last event comes twice",
        ReadContract,
        "paging.py",
        "rest = rest._replace(after=events[-1].version)",
        "rest = rest._replace(after=max(rest.after + 1, events[-1].version - 1))",
    ),
    Mutant(
        "a limit is for each page",
        ReadContract,
        "paging.py",
        "left = None if left is None else left - min(left, len(page.events))",
        "left = left",
    ),
    Mutant(
        "who follows skips what came while it read",
        ReadContract,
        "sqlite.py",
        "            if await self._reader.last_position() <= after:\n",
        "            after = await self._reader.last_position()\n            if True:\n",
    ),
]


def test_the_store_without_a_change_passes():
    with grown(Mutant("nothing", EventStoreContract, "", "", "")) as store:
        assert first_failure(store, EventStoreContract, PATIENCE_SECONDS) is None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what.replace(" ", "-"))
def test_a_store_with_one_thing_wrong_is_noticed(mutant):
    with grown(mutant) as store:
        assert first_failure(store, mutant.part, within=1) is not None
