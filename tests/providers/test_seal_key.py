"""The key that signs seals."""

import stat

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from cueline.errors import ConfigError
from cueline.events.signed_note import Checkpoint, read_note
from cueline.providers.seal_key import is_signed_by, seal_key

CHECKPOINT = Checkpoint("cueline/1f0", 7, bytes(32))


@pytest.fixture
def environ(tmp_path):
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def test_the_key_is_made_once_and_nobody_else_can_read_it(environ, tmp_path):
    first, again = (seal_key(environ).verifier_key("cueline/1f0") for _ in range(2))

    file = tmp_path / "cueline" / "seal.key"
    assert first == again
    assert first.startswith("cueline/1f0+")
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)


def test_a_signed_checkpoint_is_accepted_with_its_key_alone(environ, tmp_path):
    key, other = seal_key(environ), seal_key({"XDG_CONFIG_HOME": str(tmp_path / "other")})

    signed = key.sign(CHECKPOINT)

    assert is_signed_by(read_note(signed.note), key.verifier_key("cueline/1f0"))
    assert not is_signed_by(signed, other.verifier_key("cueline/1f0"))
    assert not is_signed_by(signed, key.verifier_key("cueline/2f0"))
    assert not is_signed_by(signed, "no key")


def test_a_changed_checkpoint_or_signature_is_refused(environ):
    key = seal_key(environ)
    public, signed = key.verifier_key("cueline/1f0"), key.sign(CHECKPOINT)

    other = CHECKPOINT._replace(size=8)
    flipped = signed.signature[:-1] + bytes([signed.signature[-1] ^ 1])

    assert not is_signed_by(signed._replace(checkpoint=other), public)
    assert not is_signed_by(signed._replace(signature=flipped), public)


def test_a_key_that_others_can_read_is_refused(environ, tmp_path):
    seal_key(environ)
    (tmp_path / "cueline" / "seal.key").chmod(0o644)

    with pytest.raises(ConfigError, match="others may read it; run `chmod 600"):
        seal_key(environ)


def test_a_named_key_is_never_made(environ, tmp_path):
    with pytest.raises(ConfigError, match="no such file; `openssl genpkey -algorithm ed25519"):
        seal_key(environ, tmp_path / "my.pem")


def test_another_kind_of_key_is_refused(environ, tmp_path):
    file = tmp_path / "my.pem"
    file.touch(0o600)
    pem = X25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )

    for content in (b"", b"no key", pem):
        file.write_bytes(content)
        with pytest.raises(ConfigError, match="has no Ed25519 key in PEM"):
            seal_key(environ, file)


def test_without_a_folder_for_keys_the_message_says_what_to_set():
    with pytest.raises(ConfigError, match="CUELINE_KEYS_FOLDER"):
        seal_key({})
