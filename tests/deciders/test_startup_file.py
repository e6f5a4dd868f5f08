"""Writing what a later start reads or runs is asked about, whatever the policy says."""

import pytest

from cueline.deciders.policy import judge, tools_that_may_ask
from cueline.deciders.startup_file import own_modules
from cueline.events.agent import Policy, Rule, Workspace
from tests.deciders.policy_example import spec
from tests.session_example import AGENT, tool

OFF = Policy(approval=("off",))
PLACE = Workspace(machine="here", path="/work/site")
WRITE = spec("write_file", declared="idempotent", paths=("path",), writes=("path", "content"))
RUN = tool("run_command")
OWN = AGENT.model_copy(
    update={
        "tools": (
            spec("post", target="/work/site/post.py:post"),
            spec("count", target="site_tools.count:count"),
            spec("list", target="cueline.tools.search:list_files"),
        )
    }
)


def answer(path, policy=OFF, of=WRITE):
    return judge(
        policy, of, {"path": path, "content": "x"}, workspace=PLACE, modules=own_modules(OWN)
    )


def answer_to(command):
    modules = own_modules(OWN)
    return judge(OFF, RUN, {"command": command}, workspace=PLACE, modules=modules).answer


@pytest.mark.parametrize(
    "path",
    [
        *("cueline.toml", "agent.toml", "deep/er/reviewer.toml", "pyproject.toml", ".mcp.json"),
        *(".git/hooks/pre-commit", ".git/config", "sub/.git/config", ".GIT/config", ".gitconfig"),
        *(".github/workflows/ci.yml", ".gitlab-ci.yml", "Jenkinsfile", ".circleci/config.yml"),
        *(".bashrc", "/root/.profile", "../.zshrc", ".envrc", ".env", "a/../.vimrc"),
        *(".vscode/tasks.json", ".idea/workspace.xml", "x.code-workspace", ".dir-locals.el"),
        *("/root/.config/fish/config.fish", "/root/.ssh/authorized_keys", "sitecustomize.py"),
        *("post.py", "/work/site/post.py", "./x/../post.py", "site_tools/count.py"),
        *("site_tools/count/__init__.py", "Post.py"),
    ],
)
def test_writing_what_a_later_start_reads_is_asked(path):
    judged = answer(path)

    assert ("ask", "read at a start") == (judged.answer, judged.rule)


@pytest.mark.parametrize(
    "path",
    ["notes.md", "src/post.txt", "git/config", "cueline/tools/files.py", "tomls/a", "other.py"],
)
def test_writing_anything_else_is_as_the_policy_says(path):
    assert ("allow", "off") == (answer(path).answer, answer(path).rule)


def test_a_path_may_be_deep_in_the_arguments_or_a_default():
    properties = {"to": {"type": "string", "default": ".envrc"}}
    write = spec("write", declared="idempotent", paths=("to",)).model_copy(
        update={"parameters": {"type": "object", "properties": properties}}
    )
    edits = {"edits": [{"path": "a.md"}, {"path": ".git/hooks/pre-commit"}]}

    for tool_, arguments in ((spec("edit", declared="idempotent"), edits), (write, {})):
        assert "ask" == judge(OFF, tool_, arguments, workspace=PLACE, modules=()).answer
    assert "allow" == judge(OFF, write, {"to": "a.md"}, workspace=PLACE, modules=()).answer


def test_reading_one_is_as_the_policy_says():
    assert "allow" == answer(".git/config", of=tool("read_file", "read_only")).answer


def test_a_rule_that_allows_does_not_lift_it_and_one_that_denies_is_stronger():
    allows = Policy(rules=(Rule(name="all", answer="allow", paths=("**",)),))
    denies = Policy(rules=(Rule(name="none", answer="deny", paths=("**",)),))

    assert "ask" == answer(".git/config", allows).answer
    assert ("deny", "none") == (answer("agent.toml", denies).answer, "none")


def test_a_question_of_the_policy_keeps_its_people():
    two = Policy(rules=(Rule(name="two", answer="ask", paths=("**",), votes=2),))

    assert ("two", 2) == (answer("agent.toml", two).rule, answer("agent.toml", two).votes)


@pytest.mark.parametrize("key", ["path", "file", "command"])
def test_a_tool_that_declares_no_paths_is_asked_by_its_texts(key):
    judged = judge(OFF, tool("save"), {key: ".git/hooks/pre-push"}, workspace=PLACE)

    assert "ask" == judged.answer


@pytest.mark.parametrize(
    "command",
    [
        "echo x > .git/hooks/pre-commit",
        "cp evil .git/hooks/",
        "tee -a ~/.bashrc",
        "sed -i s/a/b/ agent.toml",
        "printf x>>cueline.toml",
        "mv 'a b' \".github/workflows/ci.yml\"",
        "git config core.hooksPath /tmp/x",
        "git -C . config --global alias.st '!sh'",
        "crontab jobs",
    ],
)
def test_a_command_that_names_one_is_asked(command):
    assert "ask" == answer_to(command)


@pytest.mark.parametrize(
    "command",
    [
        *("printf x>>.bash'rc'", 'echo x > ".git/hooks/"pre-commit', "tee ~/.bash\\rc < x"),
        *(
            "sudo sh -c 'echo x >.env'",
            "cat a > .envrc",
            "sort a -o .profile",
            "cd .git/hooks && ls > a",
        ),
        *("bash <<E\necho x > .env\nE", "git diff --output=.env", "git checkout -- .gitattributes"),
        *("git config --global core.editor list", "crontab -", "python -c \"open('.env', 'w')\""),
        *(
            "$X .envrc",
            "if [ a ]; then rm .env; fi",
            "cp a site_tools/count.py",
            ".git/hooks/post-merge",
        ),
    ],
)
def test_a_command_that_may_write_one_is_asked_however_it_is_written(command):
    assert "ask" == answer_to(command)


@pytest.mark.parametrize(
    "command",
    [
        *(
            "ls -la",
            "git status",
            "python -m pytest",
            "make test",
            "ls .git/hooks",
            "cat .env | wc -l",
        ),
        *("grep -n x pyproject.toml > found.txt", "echo 'see .env'", "sudo cat /root/.bashrc"),
        *("git diff .gitattributes", "git commit -m 'Name it in pyproject.toml'", "git add .env"),
        *(
            "git config --get user.name",
            "git config get core.editor",
            "git config -l",
            "crontab -l",
        ),
        *(
            "head site_tools/count.py",
            "cat < .env 2>/dev/null",
            "diff .env .envrc",
            "sh -c 'cat .env'",
        ),
    ],
)
def test_a_command_that_writes_none_is_as_the_policy_says(command):
    assert "allow" == answer_to(command)


def test_a_long_text_is_no_path():
    text = "x" * 5000 + "/.bashrc"

    assert "allow" == judge(OFF, tool("save"), {"text": text}, workspace=PLACE).answer


def test_a_tool_asks_by_its_policy_where_nobody_could_answer():
    """A log in memory takes an agent whose policy asks nothing."""
    agent = AGENT.model_copy(update={"tools": (WRITE,), "policy": OFF})

    assert () == tools_that_may_ask(agent)


def test_a_patch_is_asked_by_the_files_that_it_names():
    patch = spec("apply_patch", paths=("paths",))

    for paths, said in ((["a.md", ".git/hooks/pre-commit"], "ask"), (["a.md"], "allow")):
        arguments = {"paths": paths, "patch": "--- a/.env\n"}
        assert said == judge(OFF, patch, arguments, workspace=PLACE).answer
