"""Names of streams: `<category>-<tenant>/<id>`.

Example: `session-default/7f3a` has the category `session`, the tenant `default` and
the id `7f3a`. Users do not see `default/`. Ids become file names, so their form is
checked on entry.
"""

import re

from cueline.errors import CuelineError, InvalidNameError

DEFAULT_TENANT = "default"
_TENANT = re.compile(r"[a-z0-9_]{1,40}")
_ID = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
_LONGEST_ID = 128
_LONGEST_PLACE = 32
"""The end of an approval's id, after the session's id: `.<turn>.<index>.<n>`."""
_OF_A_SESSION = frozenset({"session", "inbox", "budget", "tree"})
_STREAM = re.compile(r"[a-z]+-[a-z0-9_]{1,40}/[a-z0-9]+([.-][a-z0-9]+)*")


def stream_name(category: str, id: str, tenant: str = DEFAULT_TENANT) -> str:  # noqa: A002 - the field's name in the log
    """Return the stream's name.

    Raises:
        InvalidNameError: the id or tenant is invalid; choose another.
    """
    if not _TENANT.fullmatch(tenant):
        raise InvalidNameError(tenant, "a tenant is 1 to 40 of a-z, 0-9 and _")
    longest = _LONGEST_ID + _LONGEST_PLACE if category == "approval" else _LONGEST_ID
    if len(id) > longest or not _ID.fullmatch(id):
        raise InvalidNameError(
            id, "an id is letters a-z and digits, parted by single '.' or '-', at most 128"
        )
    return f"{category}-{tenant}/{id}"


def check_stream(name: str) -> None:
    """Raise if *name* is not a stream's name.

    Raises:
        InvalidNameError: the name is invalid.
    """
    if len(name) > _LONGEST_ID + _LONGEST_PLACE + 80 or not _STREAM.fullmatch(name):
        raise InvalidNameError(name, "a stream is named <category>-<tenant>/<id>")


def session_stream(name: str) -> str:
    """Return the session's stream for a stream name, `tenant/id` or id.

    Raises:
        InvalidNameError: *name* is none of these.
    """
    if "/" not in name:
        return stream_name("session", name)
    full = name if category_of(name) in ("session", "inbox") else f"session-{name}"
    check_stream(full)
    return sibling(full, "session")


def category_of(stream: str) -> str:
    """Return the category of *stream*: the part before the first dash."""
    return stream.partition("-")[0]


def id_of(stream: str) -> str:
    """Return the id in *stream*: the part after the slash."""
    return stream.partition("/")[2]


def tenant_of(stream: str) -> str:
    """Return the tenant of *stream*: the part between the first dash and the slash."""
    return stream.partition("/")[0].partition("-")[2]


def sibling(stream: str, category: str) -> str:
    """Return the stream of *category* with the tenant and id of *stream*."""
    return f"{category}-{stream.partition('-')[2]}"


def shown(stream: str) -> str:
    """Return the name of *stream* for users: the id, with the tenant unless it is `default`."""
    rest = stream.partition("-")[2]
    return rest.removeprefix(f"{DEFAULT_TENANT}/")


def is_model_call(effect: str) -> bool:
    """Whether an effect is a model call, `<turn>.m` or `<turn>.c`, not a tool call."""
    return effect.endswith((".m", ".c"))


def is_compaction(effect: str) -> bool:
    """Whether an effect is the model call that summarises a conversation, `<turn>.c`."""
    return effect.endswith(".c")


def effect_of(approval: str) -> str:
    """Return the effect of an approval with the id `<session>.<turn>.<index>.<n>`."""
    _, turn, index, _ = approval.rsplit(".", 3)
    return f"{turn}.{index}"


def session_of_approval(stream: str) -> str:
    """Return the session of an approval, whose id begins with the session's."""
    return sibling(stream.rsplit(".", 3)[0], "session")


def session_of(stream: str) -> str | None:
    """Return the session that the events of *stream* are about; None: not those of one session."""
    category = category_of(stream)
    if category == "approval":
        return session_of_approval(stream)
    if category == "sandbox":
        return sibling(stream.rpartition(".")[0], "session")
    return sibling(stream, "session") if category in _OF_A_SESSION else None


def trouble_message(what: str, trouble: CuelineError) -> str:
    """Return the text of *trouble* after the name *what*, unless the text begins with that name."""
    text = str(trouble)
    named = tuple(f"{name}{mark}" for name in (what, shown(what)) for mark in ":@")
    return text if text.startswith(named) else f"{what}: {text}"
