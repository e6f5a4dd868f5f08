"""A fold that makes something else of the same facts has another number."""

import hashlib
import json
from pathlib import Path

from cueline.deciders.prompt import PROMPT_FOLD, Prompt
from cueline.deciders.session import evolve, session_of
from cueline.deciders.session.state import STATE_FOLD
from tests.histories.test_histories import RECORDED
from tests.histories.test_recorded_sessions import facts_of

FOLDS = Path(__file__).parent / "folds.json"


def folds():
    """Return of each fold its number, and the digest of what it makes of all histories."""
    states, prompts = hashlib.sha256(), hashlib.sha256()
    for path in sorted(RECORDED.glob("session-*.jsonl")):
        state, prompt = session_of("session-default/7f3a"), Prompt()
        for fact in facts_of(path):
            state = evolve(state, fact)
            prompt.add(fact)
            states.update(repr(state).encode())
        prompts.update(b"".join(prompt.messages))
    return {
        "STATE_FOLD": {"number": STATE_FOLD, "digest": states.hexdigest()},
        "PROMPT_FOLD": {"number": PROMPT_FOLD, "digest": prompts.hexdigest()},
    }


def pinned():
    """Return the same as it was recorded; nothing where it was not."""
    return json.loads(FOLDS.read_text(encoding="utf-8")) if FOLDS.exists() else {}


def broken(before, after):
    """Name the folds that changed without their numbers; empty if there is none."""
    changed = [
        name
        for name in before
        if before[name] != after[name] and before[name]["number"] == after[name]["number"]
    ]
    return f"raise {' and '.join(changed)}: the same facts give something else" if changed else ""


def test_a_fold_that_changed_has_another_number():
    assert "" == broken(pinned(), folds())


def test_the_numbers_of_the_folds_are_those_that_were_recorded():
    assert folds() == pinned(), "run `python -m tests.histories.record`"


def test_a_changed_fold_is_named():
    changed = pinned() | {"PROMPT_FOLD": {"number": PROMPT_FOLD, "digest": "another"}}

    assert "raise PROMPT_FOLD: the same facts give something else" == broken(pinned(), changed)
