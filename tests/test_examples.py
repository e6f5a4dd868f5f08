"""Each example runs as its reader would run it."""

import runpy
import subprocess
import sys
from pathlib import Path

import cueline

EXAMPLES = Path(__file__).parents[1] / "examples"


# 003-049, 003-053, D29: only the structured verdict of the review starts the bugfix.
def test_a_chain_plans_implements_reviews_and_corrects_a_real_repository():
    done = subprocess.run(
        [sys.executable, EXAMPLES / "chain/chain.py"], capture_output=True, text=True, check=False
    )

    before, _, after = done.stdout.partition("the plan is there")
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "FAILED (failures=2)" in before
    assert "completed: " in after
    assert "Count no words in an empty text\nSplit at white space\nCount words\n" in after
    assert after.rstrip().endswith("OK")


# 001-058, 001-059, 001-060: this is the program's decision, not cueline's.
def test_a_failed_agent_is_started_again_only_if_that_is_harmless():
    done = subprocess.run(
        [sys.executable, EXAMPLES / "retry/retry.py"], capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    crawled, told, paid, times = done.stdout.splitlines()
    assert ("crawl: completed", "pay: failed") == (crawled, paid)
    assert told.startswith("to you: Task failed: ")
    assert "no answer" in told
    assert "pay ran 1 time" == times


# 001-058: a program that dies and is run again finds the tries that it has started.
async def test_the_program_that_retries_can_be_run_again(tmp_path):
    example = runpy.run_path(str(EXAMPLES / "retry/retry.py"))
    agent = example["procedure"]("crawl", "echo x >> tries; exit 1", tmp_path)
    told = []
    for _ in range(2):
        async with cueline.open_runtime(tmp_path / ".cueline/log.db", on="inline") as runtime:
            await example["retry_if_idempotent"](
                runtime,
                agent,
                {},
                key="today",
                is_idempotent={"crawl"}.__contains__,
                notify_user=told.append,
            )

    assert "x\nx\n" == (tmp_path / "tries").read_text()
    assert 2 == len(told)


# 003-004, 003-073: six sessions in three sandboxes, none of which is started while all wait.
def test_six_sessions_mend_one_repository_on_branches_of_their_own():
    done = subprocess.run(
        [sys.executable, EXAMPLES / "sandboxes/branches.py"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    asked, *results = done.stdout.splitlines()
    assert "6 sessions wait for a person" == asked
    assert 6 == len([each for each in results if each.startswith("completed: Part")])
    assert 6 == len([each for each in results if "cueline/part-" in each])
