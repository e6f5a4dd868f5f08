"""Skills: what the model is told of them, and what it can read."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from cueline.agents.agent import Agent
from cueline.errors import ConfigError
from cueline.tools.skills import introduction, read_skill, skills_in


def skill(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(text)
    return folder


@pytest.fixture
def skills(tmp_path):
    folder = tmp_path / "skills"
    skill(folder / "b", "---\nname: pdf-forms\ndescription: Fill in forms.\n---\n# Forms\n")
    skill(folder / "a", "---\nname: tax\ndescription: Taxes of one year.\n---\nSee rates.md.\n")
    (folder / "a" / "rates.md").write_text("19 %\n20 %\n")
    return folder


def test_the_instructions_name_each_skill_in_order(skills):
    agent = Agent(
        name="clerk", provider="scripted", model="m", instructions="Help.", skills=(skills,)
    )

    assert agent.spec().instructions.startswith("Help.\n\nYou have skills")
    assert agent.spec().instructions.endswith(
        "\n- pdf-forms: Fill in forms.\n- tax: Taxes of one year."
    )
    assert "read_skill" == agent.spec().tools[0].name


def test_the_order_of_folders_does_not_change_the_prompt(skills):
    one, other = skills / "a", skills / "b"

    assert introduction(skills_in([one, other])) == introduction(skills_in([other, one]))
    assert introduction(skills_in([skills])) == introduction(skills_in([other, one]))


def test_instructions_without_skills_are_recorded_as_they_are():
    agent = Agent(name="clerk", provider="scripted", model="m", instructions="\nHelp.\n")

    assert "\nHelp.\n" == agent.spec().instructions


def test_a_file_of_an_agent_names_skills_beside_it(skills):
    file = skills.parent / "agent.toml"
    file.write_text(
        'name = "clerk"\nprovider = "scripted"\nmodel = "m.toml"\nskills = ["skills"]\n'
    )

    assert "- tax: " in Agent.from_file(file).spec().instructions


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Plain: with a colon", "Plain: with a colon"),
        ("Plain  # and a comment", "Plain"),
        ('"In \\"quotes\\" # all of it"', 'In "quotes" # all of it'),
        ("'It''s so'", "It's so"),
        (">-\n  Folded\n  text", "Folded text"),
        ("|\n  A block\n\n  of text", "A block of text"),
        ("Goes\n  on", "Goes on"),
    ],
)
def test_a_description_is_read_as_yaml_reads_it(value, text, tmp_path):
    more = (
        "license: MIT\nmetadata:\n  author: someone\nallowed-tools:\n- Bash(git:*)\n# a comment\n"
    )
    skill(tmp_path, f"---\n\n{more}description: {value}\nname: one\n---\nText\n")

    (found,) = skills_in([tmp_path])

    assert ("one", text) == (found.name, found.description)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("# Forms", "line 1: it begins with a line ---"),
        ("", "line 1: it begins with a line ---"),
        ("---\nname: one\n", "line 2: the line --- that ends"),
        ("---\nname: one\n---\n", "line 1: `description` has 0 characters"),
        ("---\nname: one\ndescription:\n---\n", "line 3: `description` has 0 characters"),
        (f"---\nname: one\ndescription: {'x' * 1025}\n---\n", "line 3: `description` has 1025"),
        ("---\ndescription: a\n---\n", "line 1: `name` is ''"),
        ("---\nname: two words\ndescription: a\n---\n", "line 2: `name` is 'two words'"),
        ("---\nname one\n---\n", "line 2: 'name one' is no `key: value`"),
        ("---\nname: [a, b]\ndescription: a\n---\n", "line 2: '[a, b]' is no text"),
        ('---\nname: "one\ndescription: a\n---\n', 'line 2: "one is no text in quotes'),
        ("---\nname: 'one\ndescription: a\n---\n", "line 2: 'one is no text in quotes"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text, told, tmp_path):
    skill(tmp_path, text)

    with pytest.raises(ConfigError) as refused:
        skills_in([tmp_path])

    assert f"{tmp_path / 'SKILL.md'}: {told}" in str(refused.value)


def test_a_folder_without_skills_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match=r"it has no SKILL\.md"):
        skills_in([tmp_path])
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        skills_in([tmp_path / "gone"])


def test_two_skills_of_one_name_are_an_error(skills, tmp_path):
    skill(tmp_path / "more", "---\nname: tax\ndescription: Others.\n---\n")

    with pytest.raises(ConfigError, match="has a skill 'tax', too"):
        skills_in([skills, tmp_path / "more"])


@pytest.fixture
def read(skills, executor, order):
    (spec,) = Agent(name="clerk", provider="scripted", model="m", skills=(skills,)).tool_specs()

    async def call(**arguments):
        asked = replace(order(read_skill, **arguments), tool=spec)
        return (await executor.call(asked)).content.decode()

    return call


async def test_a_skill_and_its_files_are_read_when_they_are_needed(read, skills):
    assert "See rates.md." in await read(name="tax")
    assert "20 %" in await read(name="tax", file="rates.md", start_line=2)

    (skills / "a" / "rates.md").write_text("21 %")

    assert "21 %" == await read(name="tax", file="rates.md")


@pytest.mark.parametrize(
    "file", ["../b/SKILL.md", "/etc/passwd", "link", "linked/secret.txt", "hard"]
)
async def test_no_file_outside_of_the_skill_is_read(file, read, skills, outside):
    (skills / "a" / "link").symlink_to(outside / "secret.txt")
    (skills / "a" / "linked").symlink_to(outside)
    os.link(outside / "secret.txt", skills / "a" / "hard")

    with pytest.raises(Exception, match=r"PathEscapeError|links|absolute|goes up"):
        await read(name="tax", file=file)


async def test_a_skill_whose_folder_is_gone_says_so(read, skills, failure):
    (skills / "a").rename(skills / "c")

    failed = await failure(read(name="tax"))

    assert f"the folder of the skill, {skills / 'a'}, is gone" in failed.message


@pytest.mark.parametrize("name", ["taxes", "../b", "", str(Path("/etc"))])
async def test_a_skill_that_the_agent_does_not_have_is_not_read(name, read, failure):
    failed = await failure(read(name=name))

    assert f"there is no skill {name!r}" in failed.message
    assert "tax" in failed.message
