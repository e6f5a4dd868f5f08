"""Stored keys: what encrypts them, whose they are, and what happens to damaged ones."""

import base64
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import SecretStr

from cueline.errors import ConfigError
from cueline.providers.factory import account_for, model_factory
from cueline.providers.key_store import KeyStore, MasterKey, folder_of

KEY, HERS, VARIABLE = "sk-for-all-0123456789", "sk-of-ann-0123456789", "sk-variable-0123456789"
NOW = "2026-11-24T12:00:00+00:00"
MASTER = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture
def environ(tmp_path):
    return {"CUELINE_KEYS_FOLDER": str(tmp_path / "keys"), "CUELINE_ENCRYPTION_KEY": MASTER}


@pytest.fixture
def store(environ):
    return KeyStore(environ)


@pytest.fixture
def claude(agent):
    return lambda **fields: agent(**{"provider": "anthropic", "model": "claude-x", **fields})


def put(store, key, user="", provider="anthropic"):
    return store.set(provider, user, SecretStr(key), NOW)


def used(agent, environ):
    return account_for(agent, environ).key.get_secret_value()


# C47, 002-028: a user's own key, that for all users, the variable of a single user, none.
def test_a_key_is_looked_for_in_order(store, environ, claude):
    anns, bobs = claude(key_owner="ann"), claude(key_owner="bob")
    with pytest.raises(ConfigError, match=r"^ANTHROPIC_API_KEY: is not set; put the key there, st"):
        account_for(anns, environ)
    environ["ANTHROPIC_API_KEY"] = VARIABLE
    assert VARIABLE == used(anns, environ)

    put(store, KEY)
    put(store, HERS, "ann")

    assert [HERS, KEY, KEY] == [used(each, environ) for each in (anns, bobs, claude())]
    assert VARIABLE == used(claude(key_owner="ann", key_variable="ANTHROPIC_API_KEY"), environ)


def test_a_key_of_another_provider_is_not_used(store, environ, claude):
    put(store, KEY, provider="openai")

    with pytest.raises(ConfigError, match="`cueline keys set anthropic`"):
        account_for(claude(), environ)


# 002-024: a new key counts for the next call, without a restart.
def test_a_replaced_key_gives_another_model_at_the_next_call(store, environ, claude):
    make = model_factory(environ, None)
    put(store, KEY)
    first = make(claude())
    assert first is make(claude())

    put(store, HERS)

    assert first is not make(claude())
    store.remove("anthropic", "")
    with pytest.raises(ConfigError, match="is not set"):
        make(claude())


# 002-024: bound to its provider and user, by associated data.
def test_a_ciphertext_that_is_copied_to_another_user_does_not_decrypt(store, environ):
    put(store, KEY, "ann")
    table = json.loads(store.path.read_text())
    table["keys"].append({**table["keys"][0], "user": "eve"})
    store.path.write_text(json.dumps(table))

    with pytest.raises(ConfigError, match="does not decrypt the stored key of anthropic"):
        store.key("anthropic", "eve")
    assert KEY == store.key("anthropic", "ann").get_secret_value()


def test_the_same_key_is_encrypted_differently_each_time(store):
    first, second = put(store, KEY), put(store, KEY)

    assert first.key != second.key
    assert [1, 2] == [first.version, second.version]


@pytest.mark.parametrize("damage", ["v2:", "v1:A:A:A", "", "v2:AAAA:AAAA:AAAA", "v2:é:é:é"])
def test_a_damaged_ciphertext_is_told_and_no_other_key_is_used(store, environ, claude, damage):
    environ["ANTHROPIC_API_KEY"] = VARIABLE
    put(store, KEY)
    table = json.loads(store.path.read_text())
    table["keys"][0]["key"] = damage
    store.path.write_text(json.dumps(table))

    with pytest.raises(ConfigError, match="or it is damaged; restore the master key, or run"):
        account_for(claude(), environ)


def test_another_master_key_is_told(store, environ):
    put(store, KEY)
    environ["CUELINE_ENCRYPTION_KEY"] = "ab" * 32

    with pytest.raises(ConfigError, match=r"^CUELINE_ENCRYPTION_KEY: does not decrypt"):
        store.key("anthropic", "")
    assert [] == [each for each in store.secrets() if each.get_secret_value() == KEY]


def test_a_missing_master_key_is_told_and_not_made_anew(store, environ):
    put(store, KEY)
    del environ["CUELINE_ENCRYPTION_KEY"]

    with pytest.raises(ConfigError, match=r"master\.key: there is no such file, and CUELINE_ENCR"):
        store.key("anthropic", "")
    with pytest.raises(ConfigError, match="cannot be decrypted; restore the master key"):
        put(store, KEY)


@pytest.mark.parametrize("text", ["short", "ab" * 31, "é" * 44, MASTER[:-4], "x y z"])
def test_what_can_be_no_master_key_is_refused(text):
    with pytest.raises(ConfigError, match="NAME: is no master key: it takes 32 bytes") as caught:
        MasterKey(SecretStr(text), "NAME")

    assert text not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        MASTER,
        f" {MASTER}\n",
        bytes(range(32)).hex(),
        base64.urlsafe_b64encode(b"\xff" * 32).decode(),
    ],
)
def test_a_master_key_is_base64_or_hex(text):
    master = MasterKey(SecretStr(text), "NAME")

    sealed = master.encrypt(SecretStr(KEY), ("anthropic", ""))
    assert KEY == master.decrypt(sealed, ("anthropic", "")).get_secret_value()


def test_keys_that_are_stored_at_once_are_all_kept(environ):
    users = [f"user{number}" for number in range(12)]
    threads = [threading.Thread(target=put, args=(KeyStore(environ), KEY, user)) for user in users]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(users) == [each.user for each in KeyStore(environ).rows()]
    assert ["keys.json"] == [each.name for each in folder_of(environ).iterdir()]


def test_the_folder_is_where_settings_of_programs_are(tmp_path):
    assert folder_of({}) is None
    assert tmp_path / ".config" / "cueline" == folder_of({"HOME": str(tmp_path)})
    assert tmp_path / "x" / "cueline" == folder_of(
        {"HOME": "/", "XDG_CONFIG_HOME": str(tmp_path / "x")}
    )
    with pytest.raises(ConfigError, match="CUELINE_KEYS_FOLDER: is not set, and neither is HOME"):
        put(KeyStore({}), KEY)


def test_every_stored_key_and_the_master_key_are_secrets(store):
    put(store, KEY)
    put(store, HERS, "ann")

    known = {each.get_secret_value() for each in store.secrets()}

    assert {KEY, HERS, MASTER, bytes(range(32)).hex()} == known
    assert KEY not in repr(store.secrets()) + repr(vars(store)) + repr(store.rows())


def test_a_former_key_cannot_be_put_back_in_place_of_the_present_one(store):
    former = put(store, KEY).key
    put(store, f"{KEY}-new")
    table = json.loads(store.path.read_text())
    table["keys"][0]["key"] = former
    store.path.write_text(json.dumps(table))

    with pytest.raises(ConfigError, match="another master key or version encrypted it"):
        store.key("anthropic", "ann")


def test_a_sealed_text_opens_for_its_purpose_only(environ):
    key = KeyStore(environ).master_key()
    sealed = key.seal(b"pause one", "proposal")

    assert re.fullmatch(r"[\w-]+", sealed)
    assert sealed != key.seal(b"pause one", "proposal")
    assert b"pause one" == key.unseal(sealed, "proposal")
    for text, purpose in [(sealed, "task"), (sealed[:-1], "proposal"), ("", "proposal")]:
        with pytest.raises(ValueError, match="not sealed with this key"):
            key.unseal(text, purpose)


def test_the_master_key_is_made_once(tmp_path):
    environ = {"CUELINE_KEYS_FOLDER": str(tmp_path / "keys")}

    def made(_):
        return KeyStore(environ).master_key().forms[0].get_secret_value()

    with ThreadPoolExecutor(8) as threads:
        assert 1 == len(set(threads.map(made, range(8))))
    assert 0o600 == (tmp_path / "keys/master.key").stat().st_mode & 0o777


def test_a_lost_master_key_of_stored_keys_is_not_replaced(tmp_path):
    store = KeyStore({"CUELINE_KEYS_FOLDER": str(tmp_path)})
    put(store, KEY)
    (tmp_path / "master.key").unlink()

    with pytest.raises(ConfigError, match="restore the master key"):
        store.master_key()
