"""What a rule of approval is about: tools, tags, sizes, paths, commands."""

import pytest

from tests.deciders.policy_example import SHELL, WRITE, answer, judged, rule, spec


def test_a_rule_may_be_about_one_phase():
    only_code = rule("ask", phases=("code",))

    assert "ask" == answer(only_code, of=spec(tags=("phase:code",)))
    assert "allow" == answer(only_code, of=spec(tags=("phase:plan",)))


# 004-030
def test_a_rule_may_go_by_a_tag():
    assert "deny" == answer(rule(tags=("rebuild",)), of=spec(tags=("slow", "rebuild")))
    assert "allow" == answer(rule(tags=("rebuild",)))


@pytest.mark.parametrize(
    ("pattern", "told"),
    [("sh*", "deny"), ("shell", "deny"), ("s", "allow"), ("she?l", "deny"), ("**/l", "allow")],
)
def test_a_rule_may_name_tools(pattern, told):
    assert told == answer(rule(tools=(pattern,)))


# 004-029
@pytest.mark.parametrize(("count", "told"), [(50, "allow"), (51, "ask")])
def test_a_batch_over_a_size_is_asked_about(count, told):
    batch = rule("ask", items_over=50)

    assert told == answer(batch, papers={"few": [1], "ids": list(range(count)), "none": []})
    assert told == answer(batch, papers=[[list(range(count))]])


def test_what_is_empty_is_no_batch():
    some = rule("ask", items_over=0)

    assert ["allow", "allow", "ask"] == [answer(some), answer(some, ids=[]), answer(some, ids=[1])]


def test_a_rule_may_go_by_the_size_of_the_arguments():
    assert "allow" == answer(rule(bytes_over=20), text="x" * 8)
    assert "deny" == answer(rule(bytes_over=20), text="x" * 12)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("secrets/key", "deny"),
        ("secrets/a/b", "deny"),
        ("secrets", "deny"),
        ("./secrets/key", "deny"),
        ("notes/../secrets/key", "deny"),
        ("./" * 3000 + "secrets/key", "deny"),
        ("/srv/work/secrets/key", "deny"),
        ("//srv/work/secrets/key", "deny"),
        ("../work/secrets/key", "deny"),
        ("../secrets/key", "allow"),
        ("secretsx/key", "allow"),
        ("notes/secrets", "allow"),
        ("/srv/workx/secrets/key", "allow"),
    ],
)
def test_a_path_is_taken_as_the_file_system_takes_it(path, told):
    assert told == answer(rule(paths=("secrets/**",)), of=WRITE, path=path)


SEARCH = WRITE.model_copy(
    update={"parameters": {"properties": {"path": {"type": "string", "default": "notes/all"}}}}
)


# Else whoever leaves the argument out gets past the rule.
@pytest.mark.parametrize(("glob", "told"), [("notes/**", "deny"), ("secrets/**", "allow")])
def test_a_path_that_is_left_out_is_the_one_that_the_tool_takes_then(glob, told):
    assert told == answer(rule(paths=(glob,)), of=SEARCH)


@pytest.mark.parametrize("arguments", [{}, {"path": None}])
def test_a_rule_about_paths_holds_for_a_call_without_one_unless_it_allows(arguments):
    rules = [rule(told, told, paths=("secrets/**",)) for told in ("deny", "ask", "allow")]

    told = [judged(each, of=WRITE, **arguments).rule for each in rules]

    assert ["deny", "ask", "no rule"] == told


@pytest.mark.parametrize(
    ("glob", "path", "told"),
    [
        ("*.md", "a.md", "deny"),
        ("*.md", "n/a.md", "allow"),
        ("**/*.md", "a.md", "deny"),
        ("**/*.md", "n/o/a.md", "deny"),
        ("n/**/a.md", "n/a.md", "deny"),
        ("n/?.md", "n/a.md", "deny"),
        ("n/?.md", "n/ab.md", "allow"),
        ("**", "n/a\nb", "deny"),
        ("a+b", "aab", "allow"),
    ],
)
def test_a_star_stays_in_its_folder_and_two_cross_folders(glob, path, told):
    assert told == answer(rule(paths=(glob,)), of=WRITE, path=path)


# An engine that goes back would take until the end of time.
@pytest.mark.parametrize("glob", ["**/a/**/b/**/c/**/d", "*a*a*a*a*a*a*a*b", "**a**a**a**a**a**x"])
@pytest.mark.parametrize("path", ["a" * 4000, "a/b/" * 1000, "a/b/c/" * 700])
def test_a_glob_takes_time_in_proportion_to_the_path(glob, path):
    assert "allow" == answer(rule(paths=(glob,)), of=WRITE, path=path)
    assert "allow" == answer(rule(tools=(glob,)), of=spec("a" * 4000))


@pytest.mark.parametrize("glob", ["a/\\*", "?/\\*"])
def test_a_backslash_makes_a_star_a_star(glob):
    assert "deny" == answer(rule(paths=(glob,)), of=WRITE, path="a/*")
    assert "allow" == answer(rule(paths=(glob,)), of=WRITE, path="a/b")


def test_half_a_character_escapes_no_rule():
    assert "deny" == answer(rule(paths=("secrets/**",)), of=WRITE, path="secrets/\ud800")


@pytest.mark.parametrize("path", ["/etc/hosts", "//etc/hosts", "../../etc/hosts"])
@pytest.mark.parametrize("glob", ["/etc/**", "/etc/hosts", "//etc/*"])
def test_a_path_outside_the_workspace_is_known_by_its_whole_name(glob, path):
    assert "deny" == answer(rule(paths=(glob,)), of=WRITE, path=path)


def test_a_glob_of_whole_paths_means_what_lies_outside():
    assert "deny" == answer(rule(paths=("/**",)), of=WRITE, path="/etc/hosts")
    assert "allow" == answer(rule(paths=("/**",)), of=WRITE, path="/srv/work/a")


@pytest.mark.parametrize("glob", ["/srv/work/secrets/**", "//srv/./work/secrets/*"])
@pytest.mark.parametrize("path", ["secrets/key", "/srv/work/secrets/key"])
def test_a_rule_may_name_a_place_in_the_workspace_by_its_whole_name(glob, path):
    assert "deny" == answer(rule(paths=(glob,)), of=WRITE, path=path)
    assert "allow" == answer(rule(paths=(glob,)), of=WRITE, path="notes/key")


def test_a_path_that_leaves_the_workspace_is_known_by_that_too():
    assert "deny" == answer(rule(paths=("../**",)), of=WRITE, path="x/../../y")


def test_only_what_a_tool_declares_is_a_path_and_all_texts_where_it_declares_none():
    secrets = rule(paths=("secrets/**",))

    assert "allow" == answer(secrets, of=WRITE, path="a", content="secrets/key")
    assert "deny" == answer(secrets, of=SHELL, files=[{"from": "secrets/key"}])
    assert "allow" == answer(secrets, of=SHELL, files=["a", {"from": "b"}], count=7, nothing=None)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("git push origin", "deny"),
        ("cd x && git  push", "deny"),
        ("echo $(git push)", "deny"),
        ("git status", "allow"),
        ("echo git push", "allow"),
    ],
)
def test_a_rule_may_go_by_a_command(command, told):
    assert told == answer(rule(commands=("git push*",)), command=command)


def test_everything_that_a_rule_names_has_to_fit():
    both = rule(tools=("write",), paths=("a/**",))

    assert "deny" == answer(both, of=WRITE, path="a/b")
    assert "allow" == answer(both, of=WRITE, path="b")
    assert "allow" == answer(both, of=SHELL, path="a/b")


def test_a_command_is_found_whatever_is_said_beside_it():
    assert "deny" == answer(rule(commands=("rm *",)), command="rm -rf build", why="to tidy up")
