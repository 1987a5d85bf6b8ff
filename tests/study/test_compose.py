"""A Compose file as docker-compose 1.29.2 printed it, taken apart."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.model.supporting_service import SupportingService, in_order
from weighbridge.study.compose import Composed, composed, server_words, with_saved

TEXT = (Path(__file__).parent / "data/compose-config.yml").read_text()
WITHOUT = ("deploy", "redis.volumes", "restart", "networks", "sysctls")


def test_every_key_that_cannot_be_honoured_is_listed():
    with pytest.raises(StudyError) as error:
        composed(TEXT, "shop")
    listed = str(error.value).partition("unsupported keys (")[2].partition(")")[0].split(", ")
    assert {*listed} == {"shop.deploy", "redis.volumes", "redis.restart", "db.networks"}


def test_the_measured_service_and_its_companions():
    found = composed(TEXT, "shop", WITHOUT)
    assert (found.image, found.port) == ("shop:1.4", 8000)
    assert found.server == ("python3", "/shop.py", "--port", "8000")
    assert found.environment == {"REDIS": "redis", "DEBUG": "0"}
    assert found.without == {
        "shop": ("deploy",), "redis": ("restart", "volumes"), "db": ("networks", "sysctls"),
    }  # fmt: skip
    redis, db = (SupportingService.model_validate(found.companions[name]) for name in ("redis", "db"))
    assert redis.command == ("redis-server", "--save", "", "--protected-mode", "no")
    assert redis.volumes == {"/data": "data"}
    assert redis.files == {"/etc/redis": "/shop/conf"}  # what is writable of this machine's is left out
    assert redis.healthcheck is not None and redis.healthcheck.test == ("redis-cli", "ping")
    assert redis.healthcheck.retries == 30
    assert db.environment == {"POSTGRES_PASSWORD": "s$$x"}  # as env_file has it
    assert db.healthcheck is not None and db.healthcheck.start_period == 90
    assert db.after == ("redis",)
    assert in_order({"db": db, "redis": redis}) == ("redis", "db")


@pytest.mark.parametrize(
    ("written", "size"), [("'67108864'", 2**26), ("64m", 2**26), ("64MB", 2**26), ("1g", 2**30), ("8192k", 2**23)]
)
def test_what_a_service_is_set_to_is_honoured(written: str, size: int):
    """Both were refused, although a study can say them."""
    setting = f"    shm_size: {written}\n    sysctls:\n    - net.core.somaxconn=1024\n"
    text = TEXT.replace("    image: shop:1.4\n", f"    image: shop:1.4\n{setting}")
    found = composed(text, "shop", ("deploy", "redis.volumes", "restart", "networks"))
    assert found.settings == {"shm_size": f"{size}B", "sysctls": {"net.core.somaxconn": "1024"}}
    assert SupportingService.model_validate(found.companions["db"]).sysctls == {"net.core.somaxconn": "1024"}
    left_out = composed(text, "shop", WITHOUT)
    assert [*left_out.settings] == ["shm_size"] and left_out.without["shop"] == ("deploy", "sysctls")


def test_a_size_that_is_none_is_told():
    with raises_sentence(StudyError):
        composed(TEXT.replace("    image: shop:1.4\n", "    image: shop:1.4\n    shm_size: much\n"), "shop", WITHOUT)


@pytest.mark.parametrize(
    ("entrypoint", "command", "words"),
    [
        (None, None, ("/image", "-v", "--all")),
        (None, ("one",), ("/image", "-v", "one")),
        (("/mine",), None, ("/mine",)),
        (("/mine",), ("one",), ("/mine", "one")),
        ((), ("one",), ("one",)),
    ],
)
def test_the_words_are_put_together_as_the_engine_does(entrypoint: Any, command: Any, words: tuple[str, ...]):
    assert server_words(Composed("i", command, entrypoint, {}, None), ("/image", "-v"), ("--all",)) == words


def test_a_service_without_a_program_is_told():
    with raises_sentence(StudyError):
        server_words(Composed("shop", None, None, {}, None), (), ())


def test_files_are_for_the_companions_of_their_image():
    found = with_saved(composed(TEXT, "shop", WITHOUT), {"redis:7": "/r.tar", "shop:1.4": "/s.tar"})
    assert {name: each.get("saved") for name, each in found.companions.items()} == {"redis": "/r.tar", "db": None}
    with raises_sentence(StudyError):
        with_saved(found, {"redis:8": "/r.tar"})


@pytest.mark.parametrize("text", ["", "services:", "services: [a]", "services: {shop: 3}", "a: [", TEXT[:200]])
def test_what_is_no_file_is_told(text: str):
    with pytest.raises(StudyError, match="compose: "):
        composed(text, "shop", WITHOUT)


def test_who_waits_for_the_measured_service_is_listed():
    with raises_sentence(StudyError):
        composed("services: {a: {image: a}, front: {image: f, depends_on: [a]}}", "a")


@given(st.recursive(st.none() | st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_any_value_of_a_command_is_taken_or_told(value: object):
    import json

    text = json.dumps({"services": {"a": {"image": "a", "command": value}}})
    try:
        assert isinstance(composed(text, "a"), Composed)
    except StudyError as error:
        assert str(error).startswith("compose: ")
