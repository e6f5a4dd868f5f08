"""What vendors of sandboxes have in common: requests, their errors, and the run of a command.

The vendors answer in text, give back no output at a time limit, and pass no input. So a shell in
the sandbox runs each command. It reads the input from a file, kills the command's process group at
the end and at the time limit, and prints the output in base64. It needs `setsid`, `mktemp` and
`base64`, which Debian, Fedora and Alpine have. A process that leaves its group lives until the
sandbox stops.
"""

import hashlib
import math
import threading
import time
from base64 import b64decode
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import httpx2
from msgspec import Struct

from cueline.actors.sandbox_port import LOG_LABEL, NAME_LABEL, Executed
from cueline.errors import SandboxError, SandboxGoneError

GRACE_SECONDS: Final = 15.0
"""How much later than the shell in the sandbox the vendor ends a command."""
OUTPUT_BYTES: Final = 6 * 1024 * 1024
"""The most output that is given back: in base64 it is below the 10 MiB that Ray keeps."""
_NOT_FOUND: Final = 404
_REFUSED: Final = (401, 403)
_TOO_MANY: Final = 429
_BROKEN: Final = 500
_RUN: Final = f"""
exec 2>/dev/null
folder=$(mktemp -d) limit=$1 input=$2
shift 2
setsid sh -c 'sleep "$1"; : >"$2/late"; kill -KILL "-$(cat "$2/pid")"' \
    sh "$limit" "$folder" >/dev/null & guard=$!
setsid sh -c 'echo $$ >"$0/pid"; exec "$@"' "$folder" "$@" <"$input" >"$folder/output" 2>&1
code=$?
kill -KILL "-$(cat "$folder/pid")"
kill -KILL "$guard"
kill -KILL "-$guard"
[ -e "$folder/late" ] && late=1 || late=0
echo "$code" "$late" $(wc -c <"$folder/output")
head -c {OUTPUT_BYTES} "$folder/output" | base64
rm -rf "$folder"
[ "$input" = /dev/null ] || rm -f "$input"
"""


class Vendor(Struct, frozen=True, kw_only=True):
    """What is to be known of a vendor."""

    name: str
    url_variable: str
    url: str = ""
    """The URL, if the variable is not set."""
    key_variables: tuple[str, ...]
    timeout_seconds: float
    """How long the vendor may take to answer."""
    patience_seconds: float
    """How long a sandbox may take to start or stop."""
    poll_seconds: float = 0.0
    """The pause between two questions for the same."""
    wait_seconds: float = 0.0
    """The longest wait for a change that a question may ask for."""


def shell_run(command: Sequence[str], input_path: str, timeout_seconds: float) -> list[str]:
    """Return the command that runs *command* in a sandbox; `executed` reads what it prints."""
    limit = str(max(1, math.ceil(timeout_seconds)))
    return ["/bin/sh", "-c", _RUN, "sh", limit, input_path or "/dev/null", *command]


def executed(place: str, printed: str) -> Executed:
    """Return the end of a command from what the shell in the sandbox printed.

    Raises:
        SandboxError: it printed something else.
    """
    first, _, encoded = printed.partition("\n")
    try:
        code, late, size = map(int, first.split())
        return Executed(code, b64decode(encoded), size, timed_out=bool(late))
    except ValueError:
        why = f"the command was not run ({printed[:200]!r}); the image needs sh, setsid, mktemp, "
        raise SandboxError(place, f"{why}wc, head and base64: use another one") from None


def unique_name(labels: Mapping[str, str]) -> str:
    """Return a vendor's name for the sandbox with *labels*, the same for each attempt."""
    both = f"{labels.get(LOG_LABEL, '')}/{labels[NAME_LABEL]}"
    return f"cueline-{hashlib.sha256(both.encode()).hexdigest()[:32]}"


class RestClient:
    """The connections to a vendor, for any number of threads."""

    def __init__(self, vendor: Vendor, environ: Mapping[str, str]) -> None:
        """Prepare requests with the URL and the key in *environ*; nothing is sent.

        Raises:
            SandboxError: there is no URL.
        """
        self._vendor = vendor
        address = environ.get(vendor.url_variable) or vendor.url
        if not address.startswith(("https://", "http://")):
            raise SandboxError(vendor.name, f"set {vendor.url_variable} to the URL of its API")
        key = next((environ[each] for each in vendor.key_variables if environ.get(each)), "")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        # A kept connection that the vendor has closed would fail the next request, hours later.
        kept = httpx2.Limits(max_keepalive_connections=0)
        timeout = vendor.timeout_seconds
        self._http = httpx2.Client(base_url=address, headers=headers, timeout=timeout, limits=kept)

    def send(self, place: str, method: str, path: str, **how: Any) -> httpx2.Response:
        """Send a request about *place*, and return the answer.

        Raises:
            SandboxGoneError: the vendor knows no such thing.
            SandboxError: it refused, failed, or did not answer; the message has the next step.
        """
        name, url_variable = self._vendor.name, self._vendor.url_variable
        try:
            answer = self._http.request(method, path, **how)
        except httpx2.TimeoutException:
            raise SandboxError(place, f"{name} did not answer in time; try again later") from None
        except httpx2.TransportError as error:
            why = f"{name} cannot be reached ({error}); is {url_variable} right?"
            raise SandboxError(place, why) from None
        if answer.is_success:
            return answer
        said = f"{name} answered {answer.status_code}: {_message(answer)}"
        # A wrong URL is 404, too, but in HTML as a rule; no sandbox is given up for that.
        if answer.status_code == _NOT_FOUND and "json" in answer.headers.get("content-type", ""):
            raise SandboxGoneError(place, said)
        raise SandboxError(place, f"{said}; {self._next_step(answer.status_code)}")

    def json(self, place: str, method: str, path: str, **how: Any) -> Any:
        """Send a request as `send` does, and return the JSON of its answer."""
        answer = self.send(place, method, path, **how)
        try:
            return answer.json()
        except ValueError:
            why = (
                f"{self._vendor.name} did not answer in JSON; is {self._vendor.url_variable} right?"
            )
            raise SandboxError(place, why) from None

    def settled(
        self,
        place: str,
        path: str,
        lasting: Collection[str],
        *,
        field: str,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """Return what is at *path* as soon as *field* of it is one of *lasting*.

        Raises:
            SandboxError: it was not in *seconds*, or else in the vendor's patience.
        """
        patience = self._vendor.patience_seconds if seconds is None else seconds
        query = {"wait_seconds": min(self._vendor.wait_seconds, patience)}
        how = {"params": query} if self._vendor.wait_seconds else {}
        deadline = time.monotonic() + patience
        while (seen := self.json(place, "GET", path, **how))[field] not in lasting:
            if time.monotonic() > deadline:
                why = (
                    f"{self._vendor.name} says {seen[field]} after {patience:g} s; try again later"
                )
                raise SandboxError(place, why)
            threading.Event().wait(self._vendor.poll_seconds)
        return dict(seen)

    def _next_step(self, status: int) -> str:
        if status in _REFUSED:
            return f"set {self._vendor.key_variables[0]} to a key that may do this"
        if status == _NOT_FOUND:
            return f"is {self._vendor.url_variable} right?"
        if status == _TOO_MANY or status >= _BROKEN:
            return "try again later"
        return "change the request or the sandbox's spec"


def _message(answer: httpx2.Response) -> str:
    """Return the message of an error, in any of the vendors' forms."""
    try:
        body = answer.json()
    except ValueError:
        return answer.text[:500]
    inner = body.get("error") if isinstance(body, dict) else None
    said = inner if isinstance(inner, dict) else body
    if isinstance(said, dict):
        said = said.get("message") or said.get("detail") or said
    return str(said)[:500]
