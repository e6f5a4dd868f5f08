"""`cueline audit seal`, `prove` and `verify`: changes that the chains do not show."""

import json
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cueline.events.chain import hash_payload, link
from cueline.events.store import GENESIS
from cueline.providers.seal_key import seal_key
from cueline.sqlite_library import sqlite_library

TLOG = Path(__file__).parents[2] / ".venv-tlog/bin/python"
"""It needs Python 3.12, and packages of its own."""
VERIFIER = Path(__file__).parents[2] / "examples/proof/verify_proof.py"
CHAINED = (
    "version, type, schema, occurred_us, recorded_us, epoch, actor, attrs, correlation_id, "
    "causation_id, step, seq"
)


@pytest.fixture
def two(finished, monkeypatch):
    """A log with two sessions, and nothing sealed; seals go to a folder of the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(finished.folder / "state"))
    hello = finished.agent(finished.hello)
    done = finished("run", "Hi", "--agent", hello, "--inline", "--id", "two")
    assert 0 == done.exit_code, done.output
    return finished


@pytest.fixture
def sealed(two):
    two.json("audit", "seal")
    return two


def add_event(shell):
    done = shell("tokens", "issue", "ada", "--scope", "read")
    assert 0 == done.exit_code, done.output


def seal_rows(shell):
    lines = shell("audit", "--type", "LogSealed", "--json").stdout.splitlines()
    return [json.loads(line) for line in lines]


def notes(shell):
    return sorted((shell.folder / "state/cueline/seals").glob("*/*.txt"))


def rewrite(shell, work):
    """Change the log as somebody does who knows all of its rules, but has no key."""
    with closing(sqlite_library().connect(shell.log)) as db:
        for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            db.execute(f"DROP TRIGGER {trigger}")
        work(db)
        db.commit()


def recompute(db, stream):
    """Compute the hash chain of a stream again."""
    [(id_,)] = db.execute("SELECT id FROM streams WHERE name = ?", [stream])
    previous = GENESIS
    rows = db.execute(
        f"SELECT payload_hash, {CHAINED} FROM events WHERE stream = ? ORDER BY version", [id_]
    )
    for payload_hash, *fields in rows.fetchall():
        previous = link(previous, payload_hash, stream, *fields)
        row = [previous, id_, fields[0]]
        db.execute("UPDATE events SET hash = ? WHERE stream = ? AND version = ?", row)
    db.execute("UPDATE streams SET head_hash = ? WHERE id = ?", [previous, id_])


def remove(db, which):
    """Remove events, and number the rest again, so that none is missing."""
    ids = f"(SELECT id FROM streams WHERE {which})"
    positions = f"(SELECT position FROM events WHERE stream IN {ids})"
    db.execute(f"DELETE FROM blob_refs WHERE position IN {positions}")
    for table in ("events", "appends"):
        db.execute(f"DELETE FROM {table} WHERE stream IN {ids}")
    db.execute(f"DELETE FROM streams WHERE {which}")
    kept = db.execute("SELECT position FROM events ORDER BY position").fetchall()
    for new, (old,) in enumerate(kept, start=1):
        db.execute("UPDATE events SET position = ? WHERE position = ?", [new, old])
        db.execute("UPDATE appends SET first = ? WHERE first = ?", [new, old])
        db.execute("UPDATE blob_refs SET position = ? WHERE position = ?", [new, old])


def blame(db):
    db.execute("UPDATE events SET actor = 'user:mallory' WHERE type = 'SessionStarted'")
    recompute(db, "session-default/one")
    recompute(db, "session-default/two")


def take_newest(db):
    """Remove the seal and the last event before it."""
    for _ in range(2):
        rows = db.execute(
            "SELECT stream, version, position FROM events ORDER BY position DESC LIMIT 1"
        )
        [(stream, version, position)] = rows.fetchall()
        db.execute("DELETE FROM events WHERE position = ?", [position])
        before = "SELECT hash FROM events WHERE stream = ? AND version = ?"
        head = db.execute(before, [stream, version - 1]).fetchone() or (GENESIS,)
        moved = "UPDATE streams SET version = ?, head_hash = ? WHERE id = ?"
        db.execute(moved, [version - 1, *head, stream])
        db.execute("DELETE FROM appends WHERE first = ?", [position])


def is_intact(shell):
    done = shell("audit", "verify")
    return done.exit_code == 0 and "every chain is intact" in done.stdout


def test_a_seal_is_an_event_of_the_log_and_a_file_outside_of_it(two):
    made = two.json("audit", "seal")

    (file,) = notes(two)
    (row,) = seal_rows(two)
    checked = two.json("audit", "verify")
    assert (str(file), made["note"]) == (made["file"], file.read_text())
    assert (f"{made['size']}.txt", made["size"] + 1) == (file.name, row["position"])
    assert ("seal-default/main", made["size"]) == (row["stream"], made["new"])
    assert ([], 1, made["size"]) == (checked["bad"], checked["seals"], checked["sealed"])
    assert [made["key"]] == checked["keys"]


def test_the_own_key_is_made_beside_the_stored_keys(sealed):
    key = sealed.folder / "config/cueline/seal.key"

    assert 0o600 == stat.S_IMODE(key.stat().st_mode)


def test_what_is_new_is_sealed_and_nothing_twice(sealed):
    again = sealed.json("audit", "seal")
    seals = len(seal_rows(sealed))
    add_event(sealed)
    third = sealed.json("audit", "seal")

    assert (0, 1) == (again["new"], seals)
    assert 2 == third["new"], "the event, and that of the first seal"
    assert 2 == len(notes(sealed))
    assert (
        sealed("audit", "verify")
        .stdout.splitlines()[1]
        .startswith(f"2 seals over the first {third['size']} events: nothing was changed since")
    )


def test_a_log_without_events_is_not_sealed(shell):
    done = shell("audit", "seal")

    assert 2 == done.exit_code
    assert [] == notes(shell)


def test_a_named_key_signs_and_a_named_folder_has_the_seal(two):
    key = two.folder / "my/cueline/seal.key"
    public = seal_key({"XDG_CONFIG_HOME": str(two.folder / "my")})

    made = two.json("audit", "seal", "--key", str(key), "--out", "elsewhere")

    log = made["note"].splitlines()[0]
    assert public.verifier_key(log) == made["key"]
    assert made["note"] == (two.folder / f"elsewhere/{made['size']}.txt").read_text()
    assert not (two.folder / "config/cueline/seal.key").exists()
    signed = ("audit", "verify", "--seals", "elsewhere", "--signed-by")
    assert 0 == two(*signed, made["key"]).exit_code
    stranger = seal_key({"XDG_CONFIG_HOME": str(two.folder / "other")})
    other = two(*signed, stranger.verifier_key(log))
    assert "the seal is signed by another key, cueline/" in other.stdout
    assert 1 == other.exit_code


def test_seals_that_are_asked_for_and_missing_are_no_pass(two):
    (two.folder / "empty").mkdir()
    (two.folder / "file").touch()
    for folder in ("empty", "file", "missing"):
        done = two("audit", "verify", "--seals", folder)
        assert 2 == done.exit_code
        assert f"error: {folder}: there is no seal in it" in done.stderr

    key = seal_key({"XDG_CONFIG_HOME": str(two.folder / "my")}).verifier_key("cueline/1f0")
    unsigned = two("audit", "verify", "--signed-by", key)
    mistaken = two("audit", "verify", "--signed-by", "ada")

    assert 1 == unsigned.exit_code
    assert f"nothing up to here is sealed, so not by {key}" in unsigned.stdout
    assert 2 == mistaken.exit_code
    assert "error: ada: it is no public key of seals" in mistaken.stderr


def test_without_a_seal_a_recomputed_chain_is_intact(two):
    rewrite(two, blame)

    assert is_intact(two)


def test_a_recomputed_chain_is_named(sealed):
    rewrite(sealed, blame)

    done = sealed("audit", "verify")

    size = notes(sealed)[0].stem
    assert 1 == done.exit_code
    assert (
        f"seal-default/main@1 (position {int(size) + 1}): the events 1 to {size} are not those "
        "of the seal: some were changed or removed\n"
    ) in done.stdout
    assert f"are not those of the seal in {notes(sealed)[0]}: " in done.stdout


def test_the_first_seal_that_does_not_fit_is_named(sealed):
    first = notes(sealed)[0].stem
    add_event(sealed)
    second = sealed.json("audit", "seal")["size"]

    def change(db):
        db.execute("UPDATE events SET actor = 'user:mallory' WHERE position = ?", [second])
        recompute(db, "token-default/main")

    rewrite(sealed, change)

    bad = sealed.json("audit", "verify")["bad"]
    assert {"seal-default/main", "?"} == {each["stream"] for each in bad}
    assert f"the events {int(first) + 1} to {second} are not those" in bad[0]["reason"]


def test_a_removed_session_is_named(sealed):
    rewrite(sealed, lambda db: remove(db, "name LIKE '%/one'"))

    bad = sealed.json("audit", "verify")["bad"]

    assert "seal-default/main" == bad[0]["stream"]
    assert "or more events before it were removed" in bad[0]["reason"]
    assert "the newest events were removed" in bad[1]["reason"]


def test_without_a_seal_a_removed_session_is_not_noticed(two):
    rewrite(two, lambda db: remove(db, "name LIKE '%/one'"))

    assert is_intact(two)


def test_removed_newest_events_are_named_by_the_file_outside_of_the_log(sealed):
    (file,) = notes(sealed)
    size = int(file.stem)
    rewrite(sealed, take_newest)

    done = sealed("audit", "verify")

    assert 1 == done.exit_code
    assert (
        f"position {size}: the log ends at position {size - 1}, and the seal in {file} has {size} "
        "events: the newest events were removed\n"
    ) in done.stdout


def test_a_removed_seal_is_named(sealed):
    rewrite(sealed, lambda db: remove(db, "category = 'seal'"))

    done = sealed("audit", "verify")

    assert 1 == done.exit_code
    assert f"the seal in {notes(sealed)[0]} was removed from the log" in done.stdout


def test_events_that_were_replaced_by_as_many_are_named(sealed):
    rewrite(sealed, take_newest)
    add_event(sealed)
    refused = sealed("audit", "seal")

    done = sealed("audit", "verify")

    assert "another seal over as many events, so the log was changed" in refused.stderr
    assert (2, 1) == (refused.exit_code, done.exit_code)
    assert "some were changed or removed" in done.stdout


def test_a_seal_with_a_changed_root_and_chain_is_refused(sealed):
    def change(db):
        [(payload, salt)] = db.execute(
            "SELECT payload, salt FROM events WHERE type = 'LogSealed'"
        ).fetchall()
        fields = json.loads(payload)
        fields["frontier"][0] = "00" * 32
        payload = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
        row = [payload, hash_payload(salt, payload)]
        db.execute("UPDATE events SET payload = ?, payload_hash = ? WHERE type = 'LogSealed'", row)
        recompute(db, "seal-default/main")

    rewrite(sealed, change)

    why = "the seal is over another log, size or root than its note"
    assert why in sealed("audit", "verify").stdout
    assert why in sealed("audit", "seal").stderr
    assert why in sealed("audit", "prove", "1").stderr


def test_an_emptied_event_stays_proved(sealed):
    sealed.change("UPDATE events SET payload = NULL, salt = NULL WHERE type = 'ModelReplied'")

    assert {"it was emptied, and not by cueline"} == {
        each["reason"] for each in sealed.json("audit", "verify")["bad"]
    }
    assert 0 == sealed("audit", "prove", "1").exit_code


def test_a_missing_row_is_reported_once(sealed):
    sealed.change("DELETE FROM events WHERE type = 'ToolStarted'")

    done = sealed("audit", "verify")

    assert "it is missing" in done.stdout
    assert "seal" not in done.stdout


def checked(shell, proof, *more):
    (shell.folder / "proof.json").write_text(json.dumps(proof))
    command = [sys.executable, "-I", VERIFIER, "proof.json", *more]
    return subprocess.run(command, cwd=shell.folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_program_without_cueline_accepts_a_proof(sealed, place):
    size = int(notes(sealed)[0].stem)
    position = {"first": 1, "middle": size // 2 + 1, "last": size}[place]

    proof = sealed.json("audit", "prove", str(position))

    done = checked(sealed, proof, proof["key"])
    assert 0 == done.returncode, done.stderr
    assert proof["leaf"] in done.stdout
    assert f"\n{position}\n" in proof["leaf"]


@pytest.mark.skipif(not TLOG.exists(), reason="`make test-tlog` installs aics-tlog")
def test_another_program_for_transparency_logs_accepts_each_proof(sealed):
    size = int(notes(sealed)[0].stem)
    proofs = [sealed.json("audit", "prove", str(position)) for position in range(1, size + 1)]
    changed = [proof | {"index": proof["index"] + 1} for proof in proofs]
    unsigned = proofs[0] | {"note": with_flipped(proofs[0]["note"], -20)}

    done = subprocess.run(
        [TLOG, "-I", Path(__file__).with_name("tlog_verifier.py")],
        input=json.dumps([*proofs, *changed, unsigned]),
        capture_output=True,
        text=True,
        check=True,
    )

    assert [True] * size + [False] * (size + 1) == json.loads(done.stdout)


def with_flipped(text, at):
    return text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]


CHANGES = {
    "leaf": lambda proof: proof | {"leaf": proof["leaf"].replace("default", "another")},
    "index": lambda proof: proof | {"index": proof["index"] + 1},
    "path": lambda proof: proof | {"path": ["00" * 32, *proof["path"][1:]]},
    "shorter path": lambda proof: proof | {"path": proof["path"][:-1]},
    "root": lambda proof: (
        proof | {"note": with_flipped(proof["note"], proof["note"].index("=") - 5)}
    ),
    "signature": lambda proof: proof | {"note": with_flipped(proof["note"], -20)},
    "log": lambda proof: proof | {"note": proof["note"].replace("cueline/", "cueline/0")},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_program_without_cueline_refuses_a_changed_proof(sealed, change):
    done = checked(sealed, change(sealed.json("audit", "prove", "3")))

    assert 1 == done.returncode
    assert done.stderr.startswith("refused: ")


def test_a_proof_by_another_key_is_refused(sealed):
    proof = sealed.json("audit", "prove", "3")
    other = seal_key({"XDG_CONFIG_HOME": str(sealed.folder / "other")})

    done = checked(sealed, proof, other.verifier_key(proof["note"].splitlines()[0]))

    assert (1, "refused: the key has not signed the note\n") == (done.returncode, done.stderr)


def test_a_proof_is_shown_as_text(sealed):
    proof = sealed.json("audit", "prove", "2")

    shown = sealed("audit", "prove", "2").stdout

    assert all(part in shown for part in (proof["leaf"], *proof["path"], proof["note"]))


@pytest.mark.parametrize(
    ("position", "why"),
    [("0", "0 is less than 1"), ("9999", "`cueline audit seal` seals what is new")],
)
def test_what_is_not_sealed_is_not_proved(sealed, position, why):
    done = sealed("audit", "prove", position)

    assert 2 == done.exit_code
    assert why in done.stderr


def test_a_changed_log_proves_nothing(sealed):
    rewrite(sealed, blame)

    done = sealed("audit", "prove", "1")

    assert 1 == done.exit_code
    assert "the log is not the one it sealed" in done.stderr


def test_a_file_outside_of_the_log_that_is_no_seal_is_named(sealed):
    notes(sealed)[0].write_text("nothing\n")

    done = sealed("audit", "verify")

    assert 2 == done.exit_code
    assert "cannot be read as a seal" in done.stderr
