"""What a Compose file takes from elsewhere is in no study; what it spells out is."""

import os
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from weighbridge import secret_values
from weighbridge.errors import StudyError
from weighbridge.model.supporting_service import ComposedService
from weighbridge.secret_values import revealed
from weighbridge.study.compose_key import Service, service_of

FILE = """\
x-common: &common {MERGED: plain}
services:
  shop:
    image: shop:${TAG}
    entrypoint: [serve, "--pass=${SHOP_PASSWORD}", "$$HOME"]
    command: []
    env_file: shop.env
    environment:
      <<: *common
      LITERAL: plain
      OVERRIDDEN: plain
      DOLLAR: a$$b
      NUMBER: 4
      ON: true
      ALONE: ${SHOP_PASSWORD}
      URL: redis://:${SHOP_PASSWORD}@db/$$0
      TWO: ${USER}:${SHOP_PASSWORD}
      USUAL: ${POOL:-5}
      FROM_SHELL:
    ports: ["8080"]
  db:
    image: db
    command: run --x ${SHOP_PASSWORD} "$${Y}"
    environment: ["A=plain", FROM_SHELL]
    healthcheck: {test: "check ${SHOP_PASSWORD}"}
    volumes: ["./${DIR}:/d:ro"]
  child:
    extends: {service: db}
    image: db
"""
NORMALISED: dict[str, Any] = {
    "shop": {
        "image": "shop:1.4",
        "entrypoint": ["serve", "--pass=canary-1", "$$HOME"],
        "command": [],
        "environment": {
            "MERGED": "plain", "LITERAL": "plain", "OVERRIDDEN": "plain", "DOLLAR": "a$$b", "NUMBER": 4, "ON": "true",
            "ALONE": "canary-1", "URL": "redis://:canary-1@db/$$0", "TWO": "canary-2:canary-1", "USUAL": "5",
            "FROM_SHELL": "can$$ary-3", "FROM_FILE": "canary-4", "odd key=": "canary-5",
        },
        "ports": [{"target": 8080}],
    },
    "db": {
        "image": "db", "command": 'run --x canary-1 "$${Y}"', "volumes": ["/x/data:/d:ro"],
        "environment": {"A": "plain", "FROM_SHELL": "can$$ary-3"}, "healthcheck": {"test": "check canary-1"},
    },
    "child": {
        "image": "db", "command": 'run --x canary-1 "$${Y}"', "volumes": ["/x/data:/d:ro"],
        "environment": {"A": "plain", "FROM_SHELL": "can$$ary-3"}, "healthcheck": {"test": "check canary-1"},
    },
}  # fmt: skip
"""As docker-compose 1.29.2 prints them."""


def of_newer_versions(services: dict[str, Any]) -> dict[str, Any]:
    """The same as Docker Compose 2 prints them: commands and checks are lists."""
    words = ["run", "--x", "canary-1", "$${Y}"]
    check = {"test": ["CMD-SHELL", "check canary-1"]}
    further = {"command": words, "healthcheck": check}
    return {**services, "db": services["db"] | further, "child": services["child"] | further}


@pytest.fixture(autouse=True)
def values(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    kept: dict[str, str] = {}
    monkeypatch.setattr(secret_values, "_values", kept)
    return kept


def service(folder: Path, services: dict[str, Any] = NORMALISED, file: str = FILE, name: str = "shop") -> Service:
    path = folder / "compose.yaml"
    path.write_text(file)
    options = ComposedService(file=str(path), service=name, without=("volumes",))

    def normalised(_: str) -> str:
        with (folder / "normalised").open("w") as text:
            YAML().dump({"services": services}, text)
        return (folder / "normalised").read_text()

    return service_of(options, normalised)


@pytest.mark.parametrize("printed", [NORMALISED, of_newer_versions(NORMALISED)])
def test_only_what_the_file_spells_out_is_in_the_study(
    tmp_path: Path, values: dict[str, str], printed: dict[str, Any]
):
    made = service(tmp_path, printed)
    shown = str((made.server, made.environment, made.companions, made.remark))
    assert "canary" not in shown.replace(str(tmp_path), "") and "can$ary" not in shown
    assert made.server == ("serve", "--pass=${secret:SHOP_PASSWORD}", "$HOME")
    assert made.environment == {
        "MERGED": "plain", "LITERAL": "plain", "OVERRIDDEN": "plain", "DOLLAR": "a$b", "NUMBER": "4", "ON": "true",
        "ALONE": "${secret:SHOP_PASSWORD}", "URL": "redis://:${secret:SHOP_PASSWORD}@db/$0",
        "TWO": "${secret:shop.TWO}", "USUAL": "${secret:shop.USUAL}", "FROM_SHELL": "${secret:shop.FROM_SHELL}",
        "FROM_FILE": "${secret:shop.FROM_FILE}", "odd key=": "${secret:shop.odd%20key%3D}",
    }  # fmt: skip
    db = made.companions["db"]
    assert db["command"] == ("run", "--x", "${secret:SHOP_PASSWORD}", "${Y}")
    assert db["healthcheck"]["test"] == ("/bin/sh", "-c", "check ${secret:SHOP_PASSWORD}")
    assert db["environment"] == {"A": "plain", "FROM_SHELL": "${secret:db.FROM_SHELL}"}
    assert made.companions["child"]["environment"] == {"A": "plain", "FROM_SHELL": "${secret:child.FROM_SHELL}"}
    assert made.companions["child"]["command"] == db["command"]
    assert "shop.image" in made.remark and "db.volumes" in made.remark


def test_programs_get_what_docker_compose_resolved(tmp_path: Path, values: dict[str, str]):
    made = service(tmp_path)
    expected = {name: str(value).replace("$$", "$") for name, value in NORMALISED["shop"]["environment"].items()}
    assert {name: revealed(value) for name, value in made.environment.items()} == expected
    assert [*map(revealed, made.server)] == ["serve", "--pass=canary-1", "$HOME"]
    assert [*map(revealed, made.companions["db"]["command"])] == ["run", "--x", "canary-1", "${Y}"]


def test_a_variable_with_several_words_is_a_secret_word_by_word(tmp_path: Path, values: dict[str, str]):
    file = "services: {shop: {image: shop, entrypoint: 'serve ${FLAGS}', ports: ['80']}}"
    printed = {"shop": {"image": "shop", "entrypoint": "serve --a canary", "ports": [{"target": 80}]}}
    made = service(tmp_path, printed, file)
    assert made.server[2] == "${secret:shop_entrypoint_2}" and [*map(revealed, made.server)] == [
        "serve",
        "--a",
        "canary",
    ]


def test_a_variable_with_two_values_is_two_secrets(tmp_path: Path, values: dict[str, str]):
    """What Docker Compose makes of ``${VAR?}`` is the same everywhere; a file may say otherwise all the same."""
    file = "services: {shop: {image: shop, entrypoint: [a], environment: {A: $X, B: '${X}'}, ports: ['80']}}"
    printed = {"shop": {"image": "shop", "entrypoint": ["a"], "environment": {"A": "1", "B": "2"}, "ports": ["80"]}}
    made = service(tmp_path, printed, file)
    assert made.environment == {"A": "${secret:X}", "B": "${secret:shop.B}"}
    assert values == {"X": "1", "shop.B": "2"}


@pytest.mark.parametrize("file", ["", "services: 3", "{", "services: {shop: {image: ${X}}}", "services: {other: {}}"])
def test_a_command_that_cannot_be_compared_is_refused(tmp_path: Path, file: str):
    with pytest.raises(StudyError, match=r"which values of shop\.entrypoint are secret"):
        service(tmp_path, file=file)


def test_variables_that_cannot_be_compared_are_secrets(tmp_path: Path):
    file = "services: {shop: {image: shop, entrypoint: [a]}}"
    printed = {"shop": {"image": "shop", "entrypoint": ["a"], "environment": {"A": "canary"}, "ports": ["80"]}}
    assert service(tmp_path, printed, file).environment == {"A": "${secret:shop.A}"}


def test_services_of_other_files_are_compared_with_them(tmp_path: Path):
    (tmp_path / "base.yaml").write_text("services: {base: {entrypoint: [serve], environment: {A: plain, B: $B}}}")
    (tmp_path / "other.yaml").write_text("services: {beside: {image: x, command: [run]}}")
    file = (
        "include: [other.yaml, {path: [base.yaml]}]\n"
        "services: {shop: {image: shop, extends: {file: base.yaml, service: base}, environment: [C=plain]}}"
    )
    variables = {"A": "plain", "B": "canary", "C": "plain"}
    printed = {
        "shop": {"image": "shop", "entrypoint": ["serve"], "environment": variables, "ports": ["80"]},
        "beside": {"image": "x", "command": ["run"]},
    }
    made = service(tmp_path, printed, file)
    assert made.environment == {"A": "plain", "B": "${secret:B}", "C": "plain"}
    assert made.companions["beside"]["command"] == ("run",)


def test_files_that_include_each_other_have_an_end(tmp_path: Path):
    (tmp_path / "other.yaml").write_text("include: [compose.yaml]\nservices: {a: {extends: {service: a}}}")
    file = "include: [other.yaml]\nservices: {shop: {image: shop, entrypoint: [a], extends: {service: shop}}}"
    printed = {"shop": {"image": "shop", "entrypoint": ["a"], "ports": ["80"]}}
    assert service(tmp_path, printed, file).server == ("a",)


def test_what_a_file_includes_takes_no_time(tmp_path: Path):
    """Each file is read once; neither a pipe nor a large file is."""
    for number in range(40):
        (tmp_path / f"{number}.yaml").write_text(f"include: [{number + 1}.yaml, {number + 1}.yaml, pipe, large]")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_text(f"services: {{shop: {{entrypoint: [{'a' * 2**20}]}}}}")
    file = "include: [0.yaml]\nservices: {shop: {image: shop, entrypoint: [a]}}"
    printed = {"shop": {"image": "shop", "entrypoint": ["a"], "ports": ["80"]}}
    assert service(tmp_path, printed, file).server == ("a",)
