"""Values of secrets: where they come from, what is stored of them, and how a later run compares them."""

import json
import os
from pathlib import Path

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge import secret_values
from weighbridge.errors import SecretError, StudyError, Unavailable
from weighbridge.model.secret import SecretName

TOKEN = SecretName("TOKEN")
PASSWORD = SecretName("db.POSTGRES_PASSWORD")
RUN = "the id and the study of a run"


def another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget every value, as a process that has just begun."""
    for state in ("_values", "_offered", "_digests"):
        monkeypatch.setattr(secret_values, state, {})


@pytest.fixture(autouse=True)
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A process of a user without a key; the path of the key to come."""
    another_process(monkeypatch)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state/weighbridge/secrets.key"


def test_a_value_replaces_its_reference_alone():
    secret_values.keep(TOKEN, "${secret:TOKEN}")
    assert secret_values.revealed("x=${secret:TOKEN} ${TOKEN} ${secret:}") == "x=${secret:TOKEN} ${TOKEN} ${secret:}"
    with raises_sentence(StudyError):
        secret_values.revealed("${secret:db.POSTGRES_PASSWORD}")


def test_a_digest_tells_nothing_without_the_key_of_the_user(begun: Path, monkeypatch: pytest.MonkeyPatch):
    secret_values.keep(TOKEN, "hunter2")
    secret_values.keep(PASSWORD, "hunter2")
    stored = secret_values.digests((TOKEN, PASSWORD), RUN)
    assert "hunter2" not in json.dumps(stored) and stored[TOKEN] != stored[PASSWORD]
    assert stored == secret_values.digests((TOKEN, PASSWORD), RUN)
    assert begun.stat().st_mode & 0o777 == 0o600 and [*begun.parent.iterdir()] == [begun]
    monkeypatch.setenv("XDG_STATE_HOME", str(begun.parent / "other"))
    assert secret_values.digests((TOKEN,), RUN)[TOKEN] != stored[TOKEN]


def test_without_secrets_no_key_is_made(begun: Path):
    assert secret_values.digests((), RUN) == {} and secret_values.require(()) == {}
    assert not begun.exists()


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 33])
def test_a_damaged_key_is_no_key(begun: Path, damage: bytes):
    begun.parent.mkdir(parents=True)
    begun.write_bytes(damage)
    begun.chmod(0o600)
    secret_values.keep(TOKEN, "hunter2")
    assert secret_values.digests((TOKEN,), RUN) == {TOKEN: ""}


def test_a_key_is_not_read_through_a_link(begun: Path, tmp_path: Path):
    begun.parent.mkdir(parents=True)
    (tmp_path / "elsewhere").write_bytes(b"k" * 32)
    begun.symlink_to(tmp_path / "elsewhere")
    secret_values.keep(TOKEN, "hunter2")
    assert secret_values.digests((TOKEN,), RUN) == {TOKEN: ""}


def test_a_key_that_others_can_read_or_made_is_refused(begun: Path, monkeypatch: pytest.MonkeyPatch):
    secret_values.keep(TOKEN, "hunter2")
    secret_values.digests((TOKEN,), RUN)
    begun.chmod(0o640)
    with pytest.raises(Unavailable, match="other users can read"):
        secret_values.digests((TOKEN,), RUN)
    begun.chmod(0o600)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(Unavailable, match="belongs to user"):
        secret_values.digests((TOKEN,), RUN)


def test_a_digest_fits_only_the_run_that_stores_it(monkeypatch: pytest.MonkeyPatch):
    """Else a stranger could copy it into a run that sends the variable of the user to the stranger."""
    secret_values.keep(TOKEN, "hunter2")
    stored = secret_values.digests((TOKEN,), RUN)
    another_process(monkeypatch)
    monkeypatch.setenv("TOKEN", "hunter2")
    secret_values.expect(stored, "another run")
    with pytest.raises(StudyError):
        secret_values.require((TOKEN,))
    secret_values.expect(stored, RUN)
    assert secret_values.require((TOKEN,)) == {TOKEN: "same"}


def test_a_later_run_says_what_has_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    secret_values.keep(TOKEN, "hunter2")
    stored = secret_values.digests((TOKEN,), RUN)
    how = {}
    for value in ("hunter2", "hunter3"):
        another_process(monkeypatch)
        secret_values.expect(stored, RUN)
        secret_values.offer("TOKEN", value)
        how[value] = secret_values.require((TOKEN,))[TOKEN]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    how["there"] = secret_values.require((TOKEN,))[TOKEN]
    assert how == {"hunter2": "same", "hunter3": "changed", "there": "unknown"}


def test_the_environment_gives_only_the_value_that_the_run_had(monkeypatch: pytest.MonkeyPatch):
    """Else a study of somebody else's could take any variable of the user's."""
    monkeypatch.setenv("POSTGRES_PASSWORD", "hunter2")
    with raises_sentence(StudyError):
        secret_values.require((TOKEN, PASSWORD))
    secret_values.keep(PASSWORD, "hunter2")
    stored = secret_values.digests((PASSWORD,), RUN)
    another_process(monkeypatch)
    secret_values.expect(stored, RUN)
    assert secret_values.require((PASSWORD,)) == {PASSWORD: "same"}
    another_process(monkeypatch)
    secret_values.expect(stored, RUN)
    monkeypatch.setenv("POSTGRES_PASSWORD", "hunter3")
    with pytest.raises(StudyError) as error:
        secret_values.require((PASSWORD,))
    assert "hunter3" not in str(error.value)


def test_a_process_of_ours_takes_values_over_and_hands_them_no_further(monkeypatch: pytest.MonkeyPatch):
    secret_values.keep(TOKEN, "hunter2")
    with secret_values.handing_on((TOKEN, PASSWORD)):
        handed = os.environ[secret_values.VARIABLE]
    assert secret_values.VARIABLE not in os.environ
    another_process(monkeypatch)
    monkeypatch.setenv(secret_values.VARIABLE, handed)
    secret_values.take_over()
    assert secret_values.kept(TOKEN) == "hunter2" and secret_values.VARIABLE not in os.environ


def test_what_is_missing_is_told_with_what_to_type():
    with pytest.raises(StudyError) as error:
        secret_values.require((TOKEN, PASSWORD, SecretName("shop.POSTGRES_PASSWORD")))
    assert_sentence(error.value)


def test_a_value_that_differs_is_told_apart_from_a_missing_one(monkeypatch: pytest.MonkeyPatch):
    names = (TOKEN, SecretName("db.PASSWORD"))
    for name in names:
        secret_values.keep(name, "hunter2")
    stored = secret_values.digests(names, RUN)
    another_process(monkeypatch)
    secret_values.expect(stored, RUN)
    with raises_sentence(SecretError):
        secret_values.require((TOKEN,))
    with raises_sentence(SecretError):
        secret_values.require(names, same=True, again="weighbridge run STUDY --out RUN")
    monkeypatch.setenv("TOKEN", "hunter3")
    with raises_sentence(SecretError):
        secret_values.require((TOKEN,), same=True)
    with raises_sentence(SecretError):
        secret_values.require(names)
    secret_values.offer("TOKEN", "hunter3")
    with raises_sentence(SecretError):
        secret_values.require((TOKEN,), same=True)
    assert secret_values.require((TOKEN,)) == {TOKEN: "changed"}
    monkeypatch.delenv("TOKEN")
    secret_values.offer("PASSWORD", "hunter3")
    with raises_sentence(SecretError):
        secret_values.require(names, same=True)


def test_a_variable_that_no_secret_takes_is_known():
    for variable in ("TOKEN", "TOKN", "db_POSTGRES_PASSWORD", "POSTGRES_PASSWORD", "PATH"):
        secret_values.offer(variable, "x")
    assert secret_values.unknown_offers((TOKEN, PASSWORD)) == ["TOKN"]


def test_values_that_are_missing_are_listed():
    secret_values.offer("TOKEN", "x")
    assert secret_values.without_value((TOKEN, PASSWORD)) == [PASSWORD]


def test_a_message_has_no_known_value():
    secret_values.keep(TOKEN, "hunter2")
    secret_values.keep(PASSWORD, "4")
    assert secret_values.redacted("refused: hunter2 after 4 s") == "refused: ${secret:TOKEN} after 4 s"


@pytest.mark.parametrize(
    "value", ["two\nlines", 'a "quoted" one', "back\\slash", "snow\N{SNOWMAN}man", "secret", "TOKEN"]
)
def test_a_message_has_no_value_however_it_is_written(value: str):
    secret_values.keep(SecretName("X.PW"), value[:4])
    secret_values.keep(TOKEN, value)
    for form in (value, json.dumps(value), json.dumps(value, ensure_ascii=False), repr(value), "${secret:TOKEN}"):
        assert secret_values.redacted(form).strip("'\"") == "${secret:TOKEN}"


def test_a_fact_keeps_words_that_are_values_too():
    secret_values.keep(PASSWORD, "postgres")
    secret_values.keep(SecretName("VERSION"), "5.15.0")
    secret_values.keep(TOKEN, "hunter2")
    assert secret_values.redacted_fact("postgres 5.15.0 hunter2") == "postgres 5.15.0 ${secret:TOKEN}"


def test_a_value_may_be_given_for_one_service_alone():
    secret_values.offer("PASSWORD", "all")
    secret_values.offer("db_PASSWORD", "db's")
    secret_values.require((SecretName("shop.PASSWORD"), SecretName("db.PASSWORD"), SecretName("PASSWORD")))
    assert secret_values._values == {"shop.PASSWORD": "all", "db.PASSWORD": "db's", "PASSWORD": "all"}
