"""What a person allowed for the rest of a session is not asked about again."""

import pytest

from cueline.deciders.policy import always_scope, exact_scope, judge
from cueline.deciders.standing_grant import StandingGrant
from cueline.events.agent import Policy, Workspace
from tests.deciders.policy_example import SHELL, WRITE, answer, judged, rule


def test_what_was_allowed_for_good_is_not_asked_about_again():
    asks = rule("ask")
    told = always_scope(WRITE, {"path": "n/a.md", "content": "x"})
    standing = [StandingGrant(WRITE.digest, told, "ada")]

    again = judged(asks, of=WRITE, standing=standing, path="n/a.md", content="y")
    assert ("allow", "always allowed by ada") == (again.answer, again.rule)
    assert "ask" == answer(asks, of=WRITE, standing=standing, path="n/b.md", content="x")
    assert "ask" == answer(asks, of=SHELL, standing=standing, path="n/a.md", content="x")


def test_a_folder_may_be_allowed_for_good():
    standing = [StandingGrant(WRITE.digest, ("n/**",), "ada")]

    assert "allow" == answer(rule("ask"), of=WRITE, standing=standing, path="n/b.md")
    assert "allow" == answer(rule("ask"), of=WRITE, standing=standing, path="/srv/work/n/b.md")
    assert "ask" == answer(rule("ask"), of=WRITE, standing=standing, path="n/../b.md")


def test_of_a_tool_without_paths_exactly_these_arguments_are_allowed_for_good():
    standing = [StandingGrant(SHELL.digest, always_scope(SHELL, {"command": "make"}), "ada")]

    assert "allow" == answer(rule("ask"), standing=standing, command="make")
    assert "ask" == answer(rule("ask"), standing=standing, command="make install")


def test_the_same_arguments_in_another_order_are_the_same():
    assert always_scope(SHELL, {"a": 1, "b": 2}) == always_scope(SHELL, {"b": 2, "a": 1})


# A model chooses the path; what it chooses must not become a pattern.
@pytest.mark.parametrize("path", ["**", "*", "n/?", "\\*", "/srv/work/n/a"])
def test_a_path_that_looks_like_a_pattern_allows_only_itself(path):
    standing = [StandingGrant(WRITE.digest, always_scope(WRITE, {"path": path}), "ada")]

    assert "allow" == answer(rule("ask"), of=WRITE, standing=standing, path=path)
    assert "ask" == answer(rule("ask"), of=WRITE, standing=standing, path="n/x")


def test_a_whole_path_may_be_allowed_for_good_below_a_workspace_that_looks_like_a_pattern():
    workspace = Workspace(machine="m", path="/srv/a?b")
    arguments = {"path": "/srv/a?b/x"}
    standing = [StandingGrant(WRITE.digest, always_scope(WRITE, arguments), "ada")]
    policy = Policy(approval=("off",), rules=(rule("ask"),))

    again = judge(policy, WRITE, arguments, workspace=workspace, standing=standing)

    assert "allow" == again.answer


# C15: nothing that was allowed before is stronger than a denial.
def test_what_was_allowed_for_good_does_not_lift_a_denial():
    standing = [StandingGrant(SHELL.digest, (exact_scope({}),), "ada")]

    assert "deny" == answer(rule("deny"), standing=standing)


# C15, C17: who may allow one call cannot allow for good what others have to.
@pytest.mark.parametrize(
    "more", [{"votes": 2}, {"may_grant": ["bob"]}, {"exclude_requester": True}]
)
def test_what_was_allowed_for_good_does_not_lift_what_other_people_have_to_allow(more):
    books = rule("ask", "books", paths=["books/**"], **more)
    anybody = judged(rule("ask"), of=WRITE, path="notes/a.md")
    standing = [StandingGrant(WRITE.digest, ("**",), "ada", anybody.demand)]

    assert "ask" == answer(rule("ask"), books, of=WRITE, standing=standing, path="books/a.md")
    assert "allow" == answer(rule("ask"), books, of=WRITE, standing=standing, path="notes/b.md")


def test_who_had_to_be_asked_may_allow_for_good_what_takes_the_same_people():
    books = rule("ask", "books", paths=["books/**"], may_grant=["ada"])
    asked = judged(rule("ask"), books, of=WRITE, path="books/a.md")
    standing = [StandingGrant(WRITE.digest, ("**",), "ada", asked.demand)]

    assert "allow" == answer(rule("ask"), books, of=WRITE, standing=standing, path="books/b.md")
    assert "allow" == answer(rule("ask"), books, of=WRITE, standing=standing, path="notes/b.md")
