"""Where sessions are driven while they are killed: in their command, or on a Ray of their own."""

import json
import os
import re
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import psutil

from cueline.runtime.up_record import find_up
from cueline.testing.wait import PATIENCE_SECONDS, wait_until

SESSIONS = 6
"""In each log; two commands at a time work on it inline, and all of them on Ray."""
KILLS = 8
"""After so many a session is left alone, so that it ends."""
UNDISTURBED = "undisturbed"
ACTORS = {
    "SessionHostActor": "host",
    "RunnerActor": "runner",
    "DispatcherActor": "dispatcher",
    "LogWriterActor": "log's writer",
    "CostLedgerActor": "ledger",
    "ApprovalGateActor": "gate",
}
TURNS = {"inline": (3, 6), "ray": (30, 45), "chain": (14, 20)}
HEAD = ("gcs_server", "raylet")


def inline(ground, sessions):
    """Drive sessions in commands, which are killed, until all are done."""
    ran = ground.ask(*ground.begin_words(UNDISTURBED), "--inline")
    assert 0 == ran.returncode, ran.stderr
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda session: drive(ground, session), sessions))


def drive(ground, session):
    begin = ground.begin_words(session)
    kills = 0
    while not ground.ended(session):
        known = ground.streams()[f"inbox-default/{session}"]
        process = ground.start(*(("resume", session) if known else begin), "--inline")
        while kills < KILLS and process.poll() is None:
            kills += 1
            disturb(ground, session, process)
        process.wait(PATIENCE_SECONDS)


def disturb(ground, session, process):
    """Do something to a session that is driven by *process*, at a moment drawn by lot."""
    before = len(ground.types(session))
    if ground.chance.random() < 0.9:  # else perhaps before it has done anything
        wait_until(lambda: process.poll() is not None or len(ground.types(session)) > before)
    ground.pause(0.5)
    if process.poll() is None:
        match ground.chance.choice(["command", "command", "tool", "send"]):
            case "command":
                ground.kill("command", psutil.Process(process.pid))
            case "tool":
                ground.kill_tool(session)
            case "send":
                ground.send(session)


@contextmanager
def ray_folder():
    """Have the Ray of each `up` in a folder of its own, with a name short enough for sockets."""
    before = dict(os.environ)
    folder = tempfile.mkdtemp(prefix="ct-", dir="/tmp")
    # It dies by our hand alone: see `cluster` in tests/ray.
    # Who has lost the head looks for it for 5 s, instead of a minute.
    os.environ.update(
        RAY_TMPDIR=folder,
        RAY_memory_monitor_refresh_ms="0",
        RAY_gcs_rpc_server_reconnect_timeout_s="5",
    )
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


def on_ray(ground, sessions):
    """Drive sessions under `up`, of which everything is killed, until all are done."""
    with ray_folder():
        try:
            ground.ask(*ground.begin_words(UNDISTURBED), "--detach")
            up(ground)
            wait_until(lambda: ground.ended(UNDISTURBED))
            beginning = [ground.start(*ground.begin_words(s), "--detach") for s in sessions]
            assert not any(each.wait(PATIENCE_SECONDS) for each in beginning)
            for _ in range(2 * KILLS):
                if not all(map(ground.ended, sessions)):
                    disturb_up(ground, sessions)
            wait_until(lambda: settled(ground, sessions), within=3 * PATIENCE_SECONDS)
        finally:
            ground.ask("down")
            for process in ground.left:  # Ray's own, some of which look on for a minute
                with suppress(psutil.Error):
                    process.kill()


def up(ground):
    words = ("up", "--detach", "--hosts", "2", "--runners", "2")
    wait_until(lambda: ground.ask(*words).returncode == 0)


def disturb_up(ground, sessions):
    ground.pause(1.5)
    session = ground.chance.choice(sessions)
    match ground.chance.choice(["part", "part", "part", "tool", "send", "up", "head"]):
        case "tool":
            ground.kill_tool(session)
        case "send" if not ground.ended(session):
            ground.send(session)
        case "up":
            kill_up(ground, "up", lambda keeper, _: [keeper])
        case "head":
            kill_up(ground, "Ray's head", lambda _, below: [p for p in below if p.name() in HEAD])
        case _:
            kill_part(ground)


def kill_part(ground):
    """SIGKILL one of the actors of `up`."""
    parts = [(role_of(process), process) for process in below(find_up(ground.log).keeper.pid)]
    parts = [(role, process) for role, process in parts if role]
    if parts:
        ground.kill(*ground.chance.choice(sorted(parts, key=lambda part: (part[0], part[1].pid))))


def kill_up(ground, kind, choose):
    """SIGKILL what *choose* names, and go up again, whatever still lives of what was there."""
    keeper = psutil.Process(find_up(ground.log).keeper.pid)
    all_of_it = below(keeper.pid)
    ground.left.update(all_of_it)
    ground.kill(kind, *choose(keeper, all_of_it))
    psutil.wait_procs([keeper], PATIENCE_SECONDS)
    up(ground)


def below(pid):
    return psutil.Process(pid).children(recursive=True)


def role_of(process):
    with suppress(psutil.Error):
        actor = re.match(r"ray::(\w+)", " ".join(process.cmdline()))
        return ACTORS.get(actor[1]) if actor else None
    return None


def settled(ground, sessions):
    """Say whether all have ended; whoever waits for a person after many deaths goes on."""
    if all(map(ground.ended, sessions)):
        return True
    for session in json.loads(ground.ask("list", "--status", "paused", "--json").stdout):
        ground.ask("resume", session["id"], "--detach")
    return False
