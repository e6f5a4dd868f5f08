"""Checks proofs with `aics-tlog`, in a Python of its own: a list of proofs on stdin."""

import json
import sys
from typing import Any

from aics_tlog import (
    parse_note,
    parse_vkey,
    verify_checkpoint,
    verify_leaf_inclusion,
)


def accepts(proof: dict[str, Any]) -> bool:
    """Whether the key has signed the note, and the path leads from the leaf to its root."""
    note = parse_note(proof["note"])
    signed = verify_checkpoint(note, parse_vkey(proof["key"]))
    path = [bytes.fromhex(each) for each in proof["path"]]
    leaf = proof["leaf"].encode()
    if not signed.ok:
        return False
    return verify_leaf_inclusion(leaf, proof["index"], signed.size, path, signed.root)


sys.stdout.write(json.dumps([accepts(proof) for proof in json.load(sys.stdin)]))
