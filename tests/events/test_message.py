"""Attachments as people see them, and what they count in a prompt."""

from base64 import b64encode

import pytest

from cueline.deciders.prompt import user_message
from cueline.events.message import IMAGE_TOKENS, FileBlock, ImageBlock, message_text, prompt_size


def image(size, name=""):
    return ImageBlock(media_type="image/png", data=b64encode(bytes(size)).decode(), name=name)


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (1, "[image/png 1 KB photo.png]"),
        (12_000, "[image/png 12 KB photo.png]"),
        (1024 * 1024, "[image/png 1.0 MB photo.png]"),
    ],
)
def test_an_attachment_is_told_by_type_size_and_name(size, told):
    assert message_text("See", (image(size, "photo.png"),)) == f"See\n{told}"


def test_a_message_may_be_an_attachment_alone():
    assert message_text("", (image(1),)) == "[image/png 1 KB]"


def test_the_data_of_an_image_counts_as_a_fixed_number_of_tokens():
    small, large = (user_message("See", (image(size),)) for size in (3, 3_000_000))

    assert prompt_size([small]) == prompt_size([large]) == len(small) - 4 + IMAGE_TOKENS


def test_texts_and_files_count_by_their_bytes():
    file = FileBlock(media_type="text/plain", name="a", data=b64encode(bytes(3_000)).decode())
    messages = [user_message('"kind":"image"'), user_message("See", (file,))]

    assert prompt_size(messages) == sum(map(len, messages))
