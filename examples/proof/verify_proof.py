"""Check a proof of `cueline audit prove POSITION --json`, without cueline and without the log.

    python verify_proof.py proof.json [KEY]

KEY is the public key that you were given by the keeper of the log. Without KEY, any key will do.
"""

import json
import sys
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def root_of(leaf: bytes, index: int, last: int, path: list[bytes]) -> bytes:
    """Return the root to which the path leads from the leaf (RFC 9162, section 2.1.3.2)."""
    node = sha256(b"\0" + leaf).digest()
    for beside in path:
        if index & 1 or index == last:
            node = sha256(b"\1" + beside + node).digest()
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            node = sha256(b"\1" + node + beside).digest()
        index, last = index >> 1, last >> 1
    return node if last == 0 else b""


def verify(proof: dict[str, Any], trusted: str | None = None) -> str:
    """Return the name of the log, or raise ValueError: the proof proves nothing."""
    name, _, key = (trusted or proof["key"]).split("+", 2)
    text, _, signed = proof["note"].partition("\n\n")
    origin, size, root = text.split("\n")
    dash, signer, signature = signed.split()
    if (dash, signer, origin) != ("—", name, name):
        raise ValueError("the note is of another log, or has another form")
    try:
        public = Ed25519PublicKey.from_public_bytes(b64decode(key)[1:])
        public.verify(b64decode(signature)[4:], f"{text}\n".encode())
    except InvalidSignature:
        raise ValueError("the key has not signed the note") from None
    index, path = int(proof["index"]), [bytes.fromhex(each) for each in proof["path"]]
    if root_of(proof["leaf"].encode(), index, int(size) - 1, path) != b64decode(root):
        raise ValueError("the path does not lead from the leaf to the signed root")
    if int(proof["leaf"].split("\n")[1]) != index + 1:
        raise ValueError("the leaf has another position")
    return str(origin)


if __name__ == "__main__":
    proof = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        print(f"{verify(proof, *sys.argv[2:])} has this event:\n{proof['leaf']}", end="")
    except (ValueError, KeyError) as error:
        sys.exit(f"refused: {error}")
