"""A process that copies a log: `python -m tests.stores.copier FROM TO`; it prints each step."""

import asyncio
import sys

from cueline.client.log import copy_log


def tell(step):
    sys.stdout.write(f"{step.what} {step.done}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(copy_log(*sys.argv[1:], progress=tell))
