"""Variables of a study file that look secret: in what is run, stored and shown there are references to them."""

import re
from pathlib import Path

import pytest

from sentences import ROOT, raises_sentence
from weighbridge import secret_values
from weighbridge.errors import StudyError
from weighbridge.model.secret import _PLACES, SecretName
from weighbridge.model.stored_study import StoredStudy, secrets_of, study_json
from weighbridge.secret_values import revealed
from weighbridge.study.external import external_resources
from weighbridge.study.frozen import thaw
from weighbridge.study.loader import check, with_blocks
from weighbridge.study.profiles import load
from weighbridge.study.secret_keys import without_secrets
from weighbridge.study.settings import with_settings
from weighbridge.study.source import parse

STUDY = """\
study: secrets   # of a file
question: Where do they go?
userland: {kind: host, env: {PATH: /usr/bin, API_TOKEN: canary 1, THREADS: "4"}}
client_userland: {kind: host, env: {"API_TOKEN": 'canary 2'}}
companions:
  db:
    image: db
    environment:
      POSTGRES_PASSWORD: |
        canary 3
      POSTGRES_USER: app
baseline: native
environments:
  native: {kind: native}
  bridge:
    kind: docker
    variables: {SECRET: canary 4, MALLOC_ARENA_MAX: "2"}
    workloads: {shop: {server_env: {DB_URL: "postgres://app:canary@db/", PIN_KEY: 12345678}}}
workloads:
  shop: {kind: command, server: "serve {port}", server_env: {DB_PASS: "canary {6}"}, client: "get {port}"}
"""
NAMES = (
    "API_TOKEN", "client_userland.API_TOKEN", "companions.db.POSTGRES_PASSWORD", "environments.bridge.SECRET",
    "environments.bridge.workloads.shop.DB_URL", "environments.bridge.workloads.shop.PIN_KEY",
    "workloads.shop.DB_PASS",
)  # fmt: skip


@pytest.fixture(autouse=True)
def values(monkeypatch: pytest.MonkeyPatch) -> dict[SecretName, str]:
    kept: dict[SecretName, str] = {}
    monkeypatch.setattr(secret_values, "_values", kept)
    return kept


def test_no_form_of_the_study_has_their_values(values: dict[SecretName, str], tmp_path: Path):
    study = check(parse(STUDY, "s.yaml"))
    changed = with_settings(with_blocks(study, 7), ["workloads.shop.server_env.NEW_TOKEN=canary 7"])
    for each in (study, changed):
        for text in (each.text, study_json(each), repr(each), str(external_resources(each))):
            assert "canary" not in text and "12345678" not in text
        assert check(parse(each.text, "again")) == each
        assert thaw(StoredStudy.model_validate_json(study_json(each)), each.text, tmp_path) == each
    assert {*secrets_of(study)} == {*NAMES} == {*values} - {SecretName("workloads.shop.NEW_TOKEN")}
    assert study.text.startswith("study: secrets   # of a file\n") and 'THREADS: "4"' in study.text
    assert study.cells[0].options.server_env == {"DB_PASS": "${secret:workloads.shop.DB_PASS}"}
    assert revealed(study.cells[0].options.server_env["DB_PASS"]) == "canary {6}"
    [bridge] = [arm for arm in study.arms if arm.name == "bridge"]
    own = next(iter(bridge.workloads.values()))
    assert [revealed(each) for each in own.server_env.values()] == [  # type: ignore[attr-defined]
        "postgres://app:canary@db/", "12345678",
    ]  # fmt: skip
    assert bridge.options.variables["MALLOC_ARENA_MAX"] == "2"  # type: ignore[attr-defined]


def test_of_an_old_study_every_value_is_one(values: dict[SecretName, str]):
    old = without_secrets(parse(STUDY, "old"), every=True)
    study = check(old)
    assert 'THREADS: "${secret' in study.text and 'POSTGRES_USER: "${secret' in study.text
    assert study.sources["userland"].env["PATH"] == "/usr/bin"  # type: ignore[attr-defined]
    assert revealed(study.file.companions["db"].environment["POSTGRES_USER"]) == "app"


def test_a_reference_can_be_written_in_every_documented_place(values: dict[SecretName, str]):
    """The table of docs/howto/secrets.md."""
    page = (ROOT / "docs/howto/secrets.md").read_text()
    places = re.findall(r"^\| `([\w.*]+)` \| `.*\$\{secret:", page, re.MULTILINE)
    assert sorted(places) == sorted(".".join(place) for place in _PLACES)
    names = ("PATH", "B", "C", "D", "E", "F", "G")
    text = """study: places
question: Which?
userland: {kind: host, env: {A: '${secret:PATH}'}}
client_userland: {kind: host, env: {A: '${secret:B}'}}
companions: {db: {image: db, environment: {A: '${secret:C}'}}}
baseline: native
environments:
  native: {kind: native, userland: {kind: host, env: {A: '${secret:D}'}}}
  bridge:
    kind: docker
    variables: {A: '${secret:E}'}
    workloads: {shop: {server_env: {A: '${secret:F}'}}}
workloads:
  shop: {kind: command, server: "serve {port}", server_env: {A: '${secret:G}'}, client: "get {port}"}
"""
    assert {*secrets_of(check(parse(text, "s.yaml")))} == {*names}


@pytest.mark.parametrize("reference", ["${secret:API TOKEN}", "${secret:}", "${secret:A", "${{secret:A B}}"])
def test_a_malformed_reference_is_refused_with_its_line(reference: str):
    text = STUDY.replace('client: "get {port}"', f"client: ['get', '{reference}']")
    text = text.replace("API_TOKEN: canary 1", f"TOKEN: '{reference}'")
    with raises_sentence(StudyError):
        check(parse(text, "s.yaml"))


def test_a_study_without_secrets_is_not_copied():
    source = parse("study: a\nworkloads: {w: {kind: command, server_env: {A: b}}}", "s.yaml")
    assert without_secrets(source) is source


def test_of_two_profiles_the_secrets_of_the_one_that_is_run_are_kept(tmp_path: Path):
    file = tmp_path / "s.yaml"
    changes = "".join(
        f"  {name}: {{workloads: {{shop: {{server_env: {{DB_PASS: {name}}}}}}}}}\n" for name in ("a", "b", "c")
    )
    file.write_text(f"{STUDY}profiles:\n{changes}")
    for name in ("b", "c", "a"):
        study = load(str(file), name)
        assert revealed(study.cells[0].options.server_env["DB_PASS"]) == name
    assert revealed(load(str(file)).cells[0].options.server_env["DB_PASS"]) == "canary {6}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{PATH: /usr/bin, API_TOKEN: canary1,", "{<<: [&b {PATH: /bin, API_TOKEN: canary1}],"),
        ("      POSTGRES_USER: app\n", "      APP: 'x=canary1\n\n        '\n"),
        ('client: "get {port}"', 'client: "get {port} --token=canary1 {X}", parameters: {X: canary1}'),
        ('client: "get {port}"', 'client: "get {port} {TOKEN}", parameters: {TOKEN: canary8}'),
        ("    image: db\n", "    image: db\n    healthcheck: {test: [check, --password=canary1]}\n"),
    ],
)
def test_a_repeated_value_is_a_reference(values: dict[SecretName, str], old: str, new: str):
    text = STUDY.replace("API_TOKEN: canary 1", "API_TOKEN: canary1")
    assert old in text
    study = check(parse(text.replace(old, new), "s.yaml"))
    for each in (study.text, study_json(study), repr(study)):
        assert "canary" not in each
    assert check(parse(study.text, "again")) == study
    assert "canary1" in values.values() and {*secrets_of(study)} == {*values}


@pytest.mark.parametrize("place", ["image: dbcanary9", "image: db # canary9", "image: db\n    user: canary9"])
def test_a_value_that_would_be_stored_is_refused(values: dict[SecretName, str], place: str):
    text = STUDY.replace("API_TOKEN: canary 1", "API_TOKEN: canary9").replace("    image: db", f"    {place}")
    with pytest.raises(StudyError) as error:
        check(parse(text, "s.yaml"))
    assert "the value of API_TOKEN" in str(error.value) and "canary9" not in str(error.value)


def test_an_ordinary_word_is_hidden_only_in_its_variable(values: dict[SecretName, str]):
    text = STUDY.replace("API_TOKEN: canary 1", "API_TOKEN: postgres").replace("image: db", "image: postgres")
    study = check(parse(text, "s.yaml"))
    assert study.file.companions["db"].image == "postgres" and SecretName("API_TOKEN") in secrets_of(study)


def test_a_parameter_that_would_end_a_shells_quotation_is_refused():
    parameter = 'client: "get {port} {TOKEN}", parameters: {TOKEN: "it\'s"}'
    with raises_sentence(StudyError):
        check(parse(STUDY.replace('client: "get {port}"', parameter), "s.yaml"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    environment:\n", '    environment: ["POSTGRES_PASSWORD=hunter2"]\n    x:\n'),
        ("    environment:\n", "    environment: POSTGRES_PASSWORD=hunter2\n    x:\n"),
        ("POSTGRES_USER: app", "POSTGRES_USER: [hunter2]"),
        ("POSTGRES_USER: app", "POSTGRES_USER: {hunter2: 1}"),
        ("    image: db\n", "    image: db\n    command: {PASSWORD: hunter2}\n"),
        ("    image: db\n", "    image: db\n    command: serve --password=hunter2\n"),
        ("    image: db\n", "    image: db\n    PASSWORD=hunter2:\n"),
        ('server_env: {DB_PASS: "canary {6}"}', 'server_env: ["PW=hunter2"]'),
        ('server_env: {DB_PASS: "canary {6}"}', "server_env: {PW hunter2: a}"),
        ("variables: {SECRET: canary 4,", "variables: {PW: {hunter2: 1},"),
        ("    kind: docker\n", '    kind: docker\n    network: "http://u:hunter2@h"\n'),
        ("    kind: docker\n", "    kind: docker\n    network: [{hunter2: 1}]\n"),
        ("baseline:", 'prometheus: "http://u:hunter2@h"\nbaseline:'),
        ("baseline:", 'prometheus: {url: ["http://u:hunter2@h"]}\nbaseline:'),
        ("baseline:", 'prometheus: {url: "http://u:hunter2@h"}\nbaseline:'),
        ("baseline:", "explain: {PW: hunter2}\nbaseline:"),
        ("baseline:", 'hosts: {"PW=hunter2": {kind: 7}}\nbaseline:'),
        ("{kind: host, env: {PATH", "{kind: {PW: hunter2}, env: {PATH"),
        ("{kind: host, env: {PATH", "{kind: 'http://u:hunter2@h', env: {PATH"),
        ("    kind: docker\n", '    kind: "http://u:hunter2@h"\n'),
        ('client: "get {port}"', 'client: "get {port} {TOKEN}", parameters: {TOKEN: [hunter2, hunter2]}'),
    ],
    ids=lambda text: " ".join(text.split()),
)
def test_no_message_about_a_study_shows_a_secret(values: dict[SecretName, str], old: str, new: str):
    assert old in STUDY
    with raises_sentence(StudyError) as error:
        check(parse(STUDY.replace(old, new), "s.yaml"))
    assert "hunter2" not in str(error.value) and "canary" not in str(error.value)


def test_no_message_about_a_setting_shows_a_secret():
    with pytest.raises(StudyError, match="the value is not YAML") as error:
        with_settings(check(parse(STUDY, "s.yaml")), ["companions.db.environment.A='hunter2"])
    assert "hunter2" not in str(error.value)
