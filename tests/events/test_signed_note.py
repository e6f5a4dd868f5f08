"""The form of a seal."""

from base64 import b64decode

import pytest

from cueline.events.signed_note import (
    Checkpoint,
    key_id,
    read_note,
    read_verifier_key,
    verifier_key,
)

NOTE = """\
example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa \
Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
"""
"""The example of the specification of checkpoints."""
KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
"""The example of the Go package of signed notes."""


def test_a_note_is_read_and_written_to_the_byte():
    signed = read_note(NOTE)

    assert NOTE == signed.note
    assert ("example.com/behind-the-sofa", 20852163) == signed.checkpoint[:2]
    assert NOTE.partition("\n\n")[0] + "\n" == signed.checkpoint.text


@pytest.mark.parametrize(
    "note",
    [
        "",
        NOTE.removesuffix("\n"),
        NOTE.replace("20852163", "020852163"),
        NOTE.replace("20852163", "-1"),
        NOTE.replace("CsUY", "CsU"),
        NOTE.replace("—", "-"),
        NOTE.replace("\n\n", "\n"),
        NOTE + NOTE.rpartition("\n\n")[2],
    ],
)
def test_another_text_is_no_note(note):
    with pytest.raises(ValueError, match="no signed checkpoint"):
        read_note(note)


def test_a_checkpoint_has_three_lines():
    root = bytes.fromhex("0f" * 32)

    assert f"cueline/1f0\n7\n{'Dw8P' * 10}Dw8=\n" == Checkpoint("cueline/1f0", 7, root).text


def test_a_public_key_has_the_text_that_other_programs_give_it():
    name, key = read_verifier_key(KEY)

    assert "c74f20a3" == key_id(name, key).hex()
    assert KEY == verifier_key("PeterNeumann", b64decode(KEY.split("+", 2)[2])[1:])


@pytest.mark.parametrize("text", ["", "ada", KEY[:-4], KEY.replace("c74f", "c74e"), f"x{KEY}"])
def test_another_text_is_no_public_key(text):
    with pytest.raises(ValueError, match=r"no verifier key|Incorrect padding"):
        read_verifier_key(text)
