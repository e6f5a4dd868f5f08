"""The limits of isolated commands, also of users other than root; the filter as a program."""

import os
import struct
import subprocess

import pytest

from cueline.events.agent_parts import Isolation, IsolationLimits
from cueline.isolation.bwrap import Machine, arguments, this_machine
from cueline.isolation.filter_file import filter_file
from cueline.isolation.ladder import rung
from cueline.isolation.limits import ProcessLimits
from cueline.isolation.seccomp import program

NOBODY = 65534


@pytest.mark.parametrize(("processes", "succeeds"), [(100, False), (1000, True)])
def test_the_number_of_processes_of_another_user_than_root_is_limited(processes, succeeds):
    if os.geteuid() or not rung(kind="bwrap").program:
        pytest.skip("only root can become another user")
    links, folders, _ = this_machine({"PATH": "/usr/bin"})
    system = tuple(each for each in folders if each.startswith(("/usr", "/etc")))
    limits = IsolationLimits(processes=processes)
    with filter_file() as descriptor:
        words = arguments(
            ["perl", "-e", PERL],
            isolation=Isolation(limits=limits),
            machine=Machine(links, system, ""),
            workspace=None,
            descriptors=["--seccomp", str(descriptor)],
        )
        done = subprocess.run(
            [rung(kind="bwrap").program, *words],
            pass_fds=[descriptor],
            preexec_fn=ProcessLimits.of(limits).before_exec,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            check=False,
        )

    assert succeeds == (b"GOT IT" in done.stdout), done.stderr


PERL = """
for (1..300) { my $child = fork; die "no process" unless defined $child; sleep 1000 unless $child; }
print "GOT IT";
"""


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_a_whole_program_whose_jumps_stay_in_it(machine):
    steps = list(struct.iter_unpack("<HBBI", program(machine)))

    assert len(steps) < 4096
    assert all(at + 1 + max(jumps) < len(steps) for at, (_, *jumps, _) in enumerate(steps[:-1]))
    assert (0x06, 0, 0, 0x7FFF0000) == steps[-1]


def test_there_is_no_filter_for_an_unknown_machine():
    assert b"" == program("riscv64")
