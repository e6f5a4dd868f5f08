"""Images and files that people send with a message."""

import json
from base64 import b64decode, b64encode

import pytest

import cueline
from cueline.client.inputs import attachments_of
from cueline.deciders.prompt import Prompt
from cueline.errors import ConfigError
from cueline.events.message import FileBlock, ImageBlock
from tests.mcp_client.conftest import PROBE
from tests.mcp_client.server import PIXEL
from tests.scripted import HELLO, scripted

PNG = b"\x89PNG\r\n\x1a\n"
JPEG, GIF, WEBP, PDF = b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8 ", b"%PDF-1.7"
MB = 1024 * 1024
TALK = scripted('reply = [{ text = "I see." }, { text = "I read." }]')


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (PNG, "image/png"),
        (JPEG, "image/jpeg"),
        (GIF, "image/gif"),
        (WEBP, "image/webp"),
        (PDF, "application/pdf"),
        ("Grüße".encode(), "text/plain"),
    ],
)
def test_the_type_of_a_file_is_that_of_its_content(tmp_path, content, kind):
    (tmp_path / "photo.txt").write_bytes(content)

    (found,) = attachments_of([tmp_path / "photo.txt"])

    assert (found.media_type, found.name, b64decode(found.data)) == (kind, "photo.txt", content)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"\0\1\2", "its content is none of PNG, JPEG, GIF, WebP, PDF and UTF-8 text"),
        (b"\xff\xfe", "its content is none of PNG"),
        (PNG + bytes(5 * MB), "it has more than 5 MB, the most for an image"),
        (b"a" * (20 * MB + 1), "it has more than 20 MB, the most for a file"),
    ],
)
def test_what_no_model_takes_is_refused_by_its_path(tmp_path, content, why):
    (tmp_path / "photo.png").write_bytes(content)

    with pytest.raises(ConfigError, match=rf"photo.png: {why}"):
        attachments_of([tmp_path / "photo.png"])


@pytest.mark.parametrize("given", ["photo.png", b"photo", [7], ["nowhere.png"]])
def test_what_is_no_list_of_files_is_refused(given):
    with pytest.raises(ConfigError):
        attachments_of(given)


def test_the_attachments_of_one_message_have_a_limit_together():
    with pytest.raises(ConfigError, match="40 MB together; one message takes 30 MB"):
        attachments_of([b"a" * (20 * MB), b"b" * (20 * MB)])


# 002-021, 002-023: the neutral form holds the content itself, and the log keeps it in a blob.
async def test_attachments_of_a_goal_and_of_a_message_reach_the_prompt_unchanged(runtime, log):
    photo, text = PNG + bytes(30_000), b"Guests: Ada"
    async with runtime() as here:
        session = await here.start(TALK, "See", id="one", open=True, attachments=[photo])
        await session.result()
        await session.send("Read", attachments=[text])
        await session.result()
        events = (await here.history("one")).events

    prompt = Prompt()
    for _, fact in events:
        prompt.add(fact)
    told = [m for m in map(json.loads, prompt.messages) if m["role"] == "user"]
    assert [[b64decode(a["data"]) for a in m["attachments"]] for m in told] == [[photo], [text]]
    assert all(len(recorded.payload or b"") < 16_000 for recorded, _ in events)


async def test_a_rerun_sends_the_attachments_again(runtime):
    async with runtime() as here:
        session = await here.start(TALK, "See", id="one", open=True, attachments=[PNG])
        await session.result()
        await session.send("Read", attachments=[b"Guests"])
        await session.result()

        found = await here.rerun("one")

        again, before = [
            [(line.kind, line.text) for line in (await here.transcript(name)).rows]
            for name in (found.session, "one")
        ]
    assert sorted(again) == sorted(before)
    assert ("user", "See\n[image/png 1 KB]") in before


# 002-027
async def test_a_file_with_a_secret_is_not_attached(runtime, monkeypatch):
    monkeypatch.setenv("CHOIR_KEY", "kept-very-secret")
    agent = HELLO.model_copy(update={"secrets": ("CHOIR_KEY",)})
    async with runtime() as here:
        with pytest.raises(ConfigError, match="text/plain: it holds the value of a secret"):
            await here.start(agent, "See", attachments=[b"the key is kept-very-secret"])

        assert () == (await here.sessions()).rows


async def test_blocks_are_attached_as_they_are(runtime):
    image = ImageBlock(media_type="image/png", data=b64encode(PNG).decode())
    file = FileBlock(media_type="text/csv", name="a.csv", data="YQ==")

    assert attachments_of([image, file]) == (image, file)


PICTURES = [PNG + bytes(30_000)]


@cueline.tool
async def draw() -> cueline.Image:
    """Draw a picture."""
    return cueline.Image(PICTURES[0])


@cueline.tool
def paint() -> cueline.Image:
    """Paint a picture, in another process."""
    return cueline.Image(JPEG + bytes(200))


DRAWING = scripted(
    """
reply = [
    { calls = [{ name = "draw", arguments = {} }, { name = "paint", arguments = {} }] },
    { text = "Done." },
]
""",
    draw,
    paint,
)


async def results_of(here, name):
    prompt = Prompt()
    for _, fact in (await here.history(name)).events:
        prompt.add(fact)
    told = [m for m in map(json.loads, prompt.messages) if m["role"] == "tool"]
    return [(m["text"], [b64decode(a["data"]) for a in m.get("attachments", ())]) for m in told]


async def test_the_model_sees_the_image_that_a_tool_returns_also_in_a_rerun(runtime):
    async with runtime() as here:
        await (await here.start(DRAWING, "Draw", id="one")).result()
        drawn = PICTURES[0]
        PICTURES[0] = b"nothing is drawn again"

        found = await here.rerun("one")

        PICTURES[0] = drawn
        told = [
            ("[image/png 30 KB]", [drawn]),
            ("[image/jpeg 1 KB]", [JPEG + bytes(200)]),
        ]
        assert await results_of(here, "one") == await results_of(here, found.session) == told
        assert found.differences == ()


async def test_a_text_beside_an_image_is_kept_without_secrets_also_in_a_rerun(runtime, monkeypatch):
    monkeypatch.setenv("CHOIR_KEY", "kept-very-secret")
    call = '{ name = "probe__captioned", arguments = { caption = "A kept-very-secret pixel." } }'
    agent = scripted(
        f'reply = [{{ calls = [{call}] }}, {{ text = "Done." }}]',
        mcp={"probe": PROBE.model_copy(update={"read_only": ("*",)})},
        secrets=("CHOIR_KEY",),
    )
    async with runtime() as here:
        await (await here.start(agent, "Look", id="one")).result()
        found = await here.rerun("one")

        ((text, images),) = await results_of(here, "one")
        assert [(text, images)] == await results_of(here, found.session)

    told, left_out, image = text.splitlines()
    assert (told, image, images) == ("A [redacted] pixel.", "[image/png 1 KB]", [PIXEL])
    assert "not shown" in left_out


@pytest.mark.parametrize(
    ("picture", "why"),
    [
        (b"no image", "it ran, but its image is not PNG, JPEG, GIF or WebP"),
        (PNG + bytes(5 * MB), "it ran, but its image has 5,242,888 bytes"),
        (PNG + b"kept-very-secret", "its image holds a secret, and is not recorded"),
    ],
)
async def test_an_image_that_cannot_be_recorded_is_a_failed_call(
    runtime, monkeypatch, picture, why
):
    monkeypatch.setenv("CHOIR_KEY", "kept-very-secret")
    monkeypatch.setattr("tests.runtime.test_attachments.PICTURES", [picture])
    async with runtime() as here:
        agent = DRAWING.model_copy(update={"secrets": ("CHOIR_KEY",)})
        await (await here.start(agent, "Draw", id="one")).result()

        (text, images), _ = await results_of(here, "one")

    assert (text.startswith(f"tool_error: {why}"), images) == (True, [])
