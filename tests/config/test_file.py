"""What a file of settings says, and what it may not."""

import os
from pathlib import Path

import pytest

from cueline.agents.agent_file import read_agent
from cueline.client.inputs import attachments_of
from cueline.config.config_source import from_environment, from_file, from_table
from cueline.config.effective import effective
from cueline.errors import ConfigError
from cueline.events.log_url import LogUrl
from cueline.providers.registry import provider_named
from tests.scripted import memory_log

AGENT, FILE = Path("agent.toml"), Path("cueline.toml")


def test_what_is_in_a_file_lies_beside_it(tmp_path):
    """004-061: wherever the command is typed."""
    (tmp_path / "cueline.toml").write_text(
        'log = "kept/log.db"\nprovider = "scripted"\nmodel = "s.toml"\n'
    )

    said = from_file(tmp_path / "cueline.toml")

    assert (LogUrl.of(tmp_path / "kept/log.db"), str(tmp_path / "s.toml")) == (
        said["log"].value,
        said["model"].value,
    )


def test_the_times_and_slots_of_a_file_hold_for_its_log(tmp_path):
    (tmp_path / "cueline.toml").write_text(
        "grace_seconds = 7\n[runner]\nslots = 3\n"
        "[sandboxes]\nmax_started = 2\nstop_after_seconds = '2m'\n"
    )
    settings = effective(from_file(tmp_path / "cueline.toml")).settings

    log = memory_log(tmp_path).with_settings(settings)

    assert (7, 3, 2, 120) == (
        log.grace_seconds,
        log.slots.loop,
        log.sandbox_slots,
        log.sandbox_grace_seconds,
    )


def test_the_model_of_a_vendor_is_no_file(tmp_path):
    (tmp_path / "cueline.toml").write_text('provider = "anthropic"\nmodel = "claude"\n')

    assert "claude" == from_file(tmp_path / "cueline.toml")["model"].value
    (tmp_path / "cueline.toml").write_text('model = "claude"\n')
    assert {"model"} == set(from_file(tmp_path / "cueline.toml"))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            {"limit": {}},
            r"key 'limit': it is unknown: did you mean 'limits'\? Known at the top level are",
        ),
        (
            {"limits": {"turns": 1}},
            (
                r"key 'limits.turns': it is unknown: did you mean 'limits.max_turns'\? "
                r"Known in \[limits\] are max_"
            ),
        ),
        ({"limits": 5}, r"key 'limits'"),
    ],
)
def test_an_unknown_key_is_refused_with_those_that_are_known(said, told):
    """004-063."""
    with pytest.raises(ConfigError, match=told):
        from_table(said, FILE)


@pytest.mark.parametrize(
    ("said", "meant"),
    [({"max_cost": 3}, "limits.max_cost"), ({"limits": {"max_turn": 3}}, "limits.max_turns")],
)
def test_an_unknown_key_that_was_meant_for_another_says_so(said, meant):
    with pytest.raises(ConfigError, match=rf"it is unknown: did you mean '{meant}'\? Known "):
        from_table(said, FILE)


def test_a_model_for_another_provider_makes_room_for_the_usual_one(tmp_path):
    (tmp_path / "agent.toml").write_text('name = "a"\nprovider = "scripted"\nmodel = "s"\n')
    env = from_environment({"CUELINE_PROVIDER": "anthropic"})

    spec = read_agent(tmp_path / "agent.toml", over=[env]).agent.spec()

    assert ("anthropic", provider_named("anthropic").default_model) == (spec.provider, spec.model)


def test_what_belongs_to_a_provider_is_not_handed_to_another():
    mine = from_table({"provider": "scripted", "model": "s"}, AGENT)
    ours = from_table({"provider": "anthropic", "key_variable": "WORK_KEY", "model": "m"}, FILE)

    settings = effective(mine, ours).settings

    assert ("scripted", "s", None) == (settings.provider, settings.model, settings.key_variable)


def test_what_is_said_of_no_provider_goes_with_the_one_below():
    env = from_environment({"CUELINE_MODEL": "larger"})
    ours = from_table({"provider": "anthropic", "key_variable": "WORK_KEY", "model": "m"}, FILE)

    settings = effective(env, ours).settings

    assert ("anthropic", "larger", "WORK_KEY") == (
        settings.provider,
        settings.model,
        settings.key_variable,
    )


@pytest.mark.parametrize("pasted", ["sk-ant-api03-abc", "two words"])
def test_a_key_in_place_of_its_variable_is_refused_and_not_repeated(pasted):
    """I11: the name is recorded; the key must not be."""
    with pytest.raises(ConfigError) as refused:
        from_table({"key_variable": pasted}, FILE)

    assert pasted not in str(refused.value)


def test_a_url_with_a_password_is_refused():
    with pytest.raises(ConfigError, match="base_url"):
        from_table({"base_url": "https://me:secret@models.example"}, FILE)


def test_a_file_that_cannot_be_read_says_why_in_words(tmp_path):
    (tmp_path / "latin.toml").write_bytes(b'model = "\xe9"')

    with pytest.raises(ConfigError, match=r"it cannot be read: Is a directory$"):
        from_file(tmp_path)
    with pytest.raises(ConfigError, match=r"latin\.toml: it is no text in UTF-8$"):
        from_file(tmp_path / "latin.toml")


@pytest.mark.parametrize("depth", [300, 500])
def test_a_file_that_is_nested_too_deep_is_refused_in_a_line(tmp_path, depth):
    file = tmp_path / "deep.toml"
    agent = 'name = "a"\nprovider = "anthropic"\nmodel = "b"\n[parameters]\n'
    file.write_text(f"{agent}c = {'[' * depth}{']' * depth}\n")

    with pytest.raises(ConfigError, match=r"it is nested too deep$") as refused:
        read_agent(file)

    assert len(str(refused.value)) < 300


def test_a_number_that_python_does_not_read_is_no_toml(tmp_path):
    (tmp_path / "cueline.toml").write_text(f"grace_seconds = {'1' * 5000}")

    with pytest.raises(ConfigError, match=r"cueline\.toml: it is not TOML: "):
        from_file(tmp_path / "cueline.toml")


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "cueline.toml").write_bytes(b'\xef\xbb\xbfmodel = "claude"')
    (tmp_path / "agent.toml").write_bytes(b'\xef\xbb\xbfname = "clerk"')

    assert "claude" == from_file(tmp_path / "cueline.toml")["model"].value
    assert "clerk" == read_agent(tmp_path / "agent.toml").agent.name


def attach(path):
    return attachments_of([path])


@pytest.mark.parametrize("read", [from_file, read_agent, attach])
def test_what_may_have_no_end_is_refused_and_not_read(read, tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")

    for path in (tmp_path / "pipe.toml", Path("/dev/zero")):
        with pytest.raises(
            ConfigError, match="it is a named pipe, a device or a socket"
        ) as refused:
            read(path)
        assert str(path) == refused.value.subject
    with pytest.raises(ConfigError, match="Is a directory"):
        read(tmp_path)


def test_a_file_may_be_a_pipe(piped):
    assert "claude" == from_file(piped('model = "claude"'))["model"].value


@pytest.fixture
def piped():
    """Return how to have a text as what a shell makes of `<(…)`."""
    ends = []

    def make(text):
        out, into = os.pipe()
        ends.append(out)
        with os.fdopen(into, "w") as file:
            file.write(text)
        return Path(f"/dev/fd/{out}")

    yield make
    for end in ends:
        os.close(end)


def test_a_log_in_memory_lies_nowhere(tmp_path):
    (tmp_path / "cueline.toml").write_text('log = "memory:one"\n')

    assert LogUrl.of("memory:one") == from_file(tmp_path / "cueline.toml")["log"].value
