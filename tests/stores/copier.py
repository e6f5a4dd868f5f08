"""A process that copies a log and stands still after a step.

`python -m tests.stores.copier FROM TO STEP` prints STEP when it gets there.
"""

import asyncio
import sys
from threading import Event

from cueline.client.log import copy_log


def stand_still(step):
    if f"{step.what} {step.done}" == sys.argv[3]:
        sys.stdout.write(f"{sys.argv[3]}\n")
        sys.stdout.flush()
        Event().wait()


if __name__ == "__main__":
    asyncio.run(copy_log(*sys.argv[1:3], progress=stand_still))
