"""Each example runs as its reader would run it."""

import subprocess
import sys
from pathlib import Path

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
