"""A rule about commands is asked of each simple command that a shell would run (ADR 0046)."""

import subprocess
import sys

import pytest

from cueline.deciders.shell_command import simple_commands
from tests.deciders.policy_example import SHELL, WRITE, answer, judged, rule

PUSH = rule(commands=("git push*",))


@pytest.mark.parametrize(
    "command",
    [
        *("git push", "git  push\tnow", "'git' \"push\"", "g\\it pu's'h", "git \\\n  push"),
        *("/usr/bin/git push", "../bin/git push", '"$HOME"/bin/git push', "FOO=1 git push"),
        *(
            "git -C . push",
            "git -C . -c a=b --no-pager push",
            'git -C "$D" push',
            "git -- push",
            "git --attr-source HEAD push",
        ),
        *("env git push", "env -i A=1 B=2 git push", "env -u A git push", "env -S 'git push'"),
        *("sudo git push", "sudo -u ada git push", "sudo -- git push", "A=1 B='c d' git push"),
        *("sh -c 'git push'", 'bash -lc "cd x; git push"', "bash -o pipefail -c 'git push'"),
        *("sh -c \"sh -c 'git push'\"", "eval 'git push'", "eval git push", "trap 'git push' EXIT"),
        *(
            "timeout -s KILL 5 git push",
            "nice -n 10 git push",
            "nohup setsid git push",
            "time git push",
        ),
        *(
            "flock f git push",
            "flock f -c 'git push'",
            "ssh host 'cd x; git push'",
            "command git push",
        ),
        *("xargs git push", "find . -exec git push {} \\;", "find . -execdir sh -c 'git push' \\;"),
        *(
            "cd x && git push",
            "a | git push",
            "git push &",
            "a; git push",
            "a\ngit push",
            "! git push",
        ),
        *("if a; then git push; fi", "for i in 1 2; do git push; done", "f() { git push; }; f"),
        *(
            "(git push)",
            "{ git push; }",
            "case a in a) git push;; esac",
            "while git push; do a; done",
        ),
        *("echo $(git push)", "echo `git push`", 'echo "$(git push)"', "cat <(git push)"),
        *("X=$(git push)", "export X=$(git push)", "[ $(git push) ]", "${X:-$(git push)}"),
        *(
            "git push > log 2>&1",
            "2>&1 git push",
            "cat <<E && git push\nx\nE",
            "cat <<E\n$(git push)\nE",
        ),
    ],
)
def test_a_command_is_found_however_it_is_written(command):
    assert "deny" == answer(PUSH, command=command)


@pytest.mark.parametrize(
    "command",
    [
        *(
            "git status",
            "git log $X",
            'git -C "$D" status',
            "git -c user.name='a b' commit -m 'x y'",
        ),
        *(
            "echo git push",
            "echo 'a; git push'",
            "grep -r 'git push' .",
            "a # git push",
            "git pushd",
        ),
        *("command -v git", "sudo apt-get install git", "xargs grep push", "find . -name git"),
        *("ls *.py", "cat > a.sh <<'E'\ngit push\nE", 'for f in *; do wc "$f"; done', "a=(b c)"),
        *(
            'echo "git push $X"',
            "[ -f git ]",
            "export A=1",
            "unset git",
            '"$V"/bin/python push',
            "",
        ),
        *(
            "sh push.sh",
            "env",
            "exec > log",
            "A=1",
            "git",
            "git -C",
            "echo {} a{b",
            "python3 - <<E\nx\nE",
        ),
        "echo 'it''s' > \"$F\" 2> /dev/null",
    ],
)
def test_what_only_looks_like_the_command_is_none(command):
    assert "allow" == answer(rule(commands=("git push", "git push *")), command=command)


UNRESOLVED = [
    *(
        "$X push",
        "git $X",
        "git -C $D status",
        "git pu?h",
        "git p{u,v}sh",
        "git $'push'",
        "g$X push",
    ),
    *("git '", "git push \\", "if x", "a <<< 'x", "echo a\r#; git push", "echo \\ #; git push"),
    *("a=(1)#; git push", "gi\\\nt push", "a --\n\\git push", "git >x push", "git <<E push\nE\n"),
    *("cat <<E\na\\\nE\nE\ngit push", "echo git push | sh", "bash <<< 'git push'", "bash -s x"),
    *("source /dev/stdin", ". <(echo git push)", "sudo -s", "sudo -", "eval git $X", 'sh -c "$X"'),
    *("echo push | xargs git", "xargs -I X sh -c X", "xargs $X", "parallel ::: 'git push'"),
    *("find . -exec", "find . -exec {} \\;", "env -Sgit push", "watch --x='git push'", "sudo --"),
    *(
        "alias g='git push'; g",
        "git -c alias.p=push p",
        "git -c $X log",
        "su -c 'git push'",
    ),
    *('f() { git "$@"; }; f push', "sh -c 'git $0' push", "sh -c 'git \"$0\"' push", "! { a; }"),
    *("a;" * 600, "a 'b' " * 2000, "sudo " * 20 + "a", "env" + " -a b" * 30, "a\0b", "f() a; f"),
]


@pytest.mark.parametrize("command", UNRESOLVED)
@pytest.mark.parametrize("told", ["deny", "ask", "notify", "allow"])
def test_what_cannot_be_resolved_matches_unless_the_rule_allows(command, told):
    matched = judged(rule(told, commands=("git push*",)), command=command).rule

    assert ("no rule" if told == "allow" else "mine") == matched


@pytest.mark.parametrize("command", ["git $X", "git log $(x)", "sh", "if"])
def test_what_is_known_of_a_command_decides_if_that_is_enough(command):
    assert "allow" == answer(rule(commands=("git push*", "sh -c*")), command="git log $(x)")
    assert "deny" == answer(rule(commands=("*",)), command=command)


@pytest.mark.parametrize(
    ("command", "matched"),
    [
        *(("make test", True), ("make test && make lint", True), ("make $X", False)),
        *(("make test; rm x", False), ("sudo make test", False), ("A=1 make test", False)),
        *(("./make test", False), ("make $(rm x)", False), ("make > x", False), ("make '", False)),
        *(("echo make | sh", False), ("make a 2>&1", True)),
    ],
)
def test_a_rule_that_allows_is_about_each_command_as_it_is_written(command, matched):
    told = judged(rule("allow", commands=("make", "make *")), command=command, why="make sure").rule

    assert matched == (told == "mine")


def test_a_command_in_parts_is_one():
    assert "deny" == answer(PUSH, command=["git", "-C", "a b", "push"])
    assert "deny" == answer(PUSH, cmd="git -C . push")
    assert "deny" == answer(PUSH, command="git", args=["-C", "a b", "push"])


def test_another_text_is_looked_at_for_what_is_surely_a_command():
    assert "deny" == answer(PUSH, script="cd x; sudo git push")
    assert "allow" == answer(PUSH, of=WRITE, path="a.md", content="It's $here: `")
    assert "mine" == judged(rule("allow", commands=("ls",)), script="ls").rule


def test_output_to_a_file_is_a_command():
    env = rule(commands=("> *.env",))

    assert ["deny", "deny", "allow"] == [
        answer(env, command=each) for each in ("ls >a.env", "sh -c 'ls >>a.env'", "ls < a.env 2>&1")
    ]


@pytest.mark.parametrize("piece", ["a|", "a()", "<", "${a#", "x=(", "$(", "find -exec ", "env -a "])
def test_no_command_holds_up_a_host(piece):
    assert len(simple_commands(piece * 20_000)) <= 501


def test_the_parser_is_loaded_only_for_what_needs_it():
    code = """
from cueline.deciders.shell_command import simple_commands
import sys
simple_commands("git -C . push")
assert "tree_sitter" not in sys.modules
simple_commands("git push; ls")
assert "tree_sitter" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tools_without_a_command_are_as_before():
    assert "allow" == answer(PUSH, of=SHELL, count=7)
