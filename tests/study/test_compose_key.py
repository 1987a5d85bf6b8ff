"""A study that names a Compose file is the study that its services stand for, whatever becomes of the file."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from saved_images import save_without_layers
from sentences import raises_sentence
from weighbridge.errors import StudyError, Unavailable
from weighbridge.model.options import External
from weighbridge.model.stored_study import StoredStudy, study_json
from weighbridge.model.study import Study
from weighbridge.study import profiles
from weighbridge.study.external import external_resources
from weighbridge.study.frozen import thaw
from weighbridge.study.loader import check, with_blocks
from weighbridge.study.schema import json_schema
from weighbridge.study.source import parse

from .texts import line_of

CONFIG = (Path(__file__).parent / "data/compose-config.yml").read_text()
"""As docker-compose 1.29.2 printed it."""
STUDY = """\
# What a published port costs
study: shop
question: What does a published port cost the shop?
compose:
  file: compose.yaml
  service: shop
  without: [deploy, redis.volumes, restart, networks, sysctls]
  saved: {"redis:7": redis.tar}
  load:
    client: "wrk -t1 -c{clients} -d1s http://{address}:{port}/"
    adapter: wrk
    parameters: {clients: [1, 16]}
baseline: native
environments:
  native: {kind: native}
  bridge: {kind: docker, network: bridge}
repetitions: {blocks: 4}
"""
LOAD = STUDY[STUDY.index("  load:") : STUDY.index("baseline:")]
OWN = "    command:\n    - python3\n"
WHOLE = "python3 /shop.py --port 8000"
"""What the service of the file runs: its image is not asked."""


class Reader:
    """Gives what Docker Compose printed, and notes how often it was asked."""

    def __init__(self, text: str) -> None:
        self.text, self.asked = text, list[str]()

    def __call__(self, file: str) -> str:
        self.asked.append(file)
        Path(file).write_text(self.text)  # it has no variables: it is written as it is normalised
        return self.text


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """A Compose file, and the files that the study names."""
    monkeypatch.chdir(tmp_path)
    for name in ("compose.yaml", "redis.tar"):
        (tmp_path / name).touch()
    save_without_layers(tmp_path / "shop.tar", {"Entrypoint": ["/shop"], "Cmd": ["-h"]})
    return Reader(CONFIG.replace(OWN, "    entrypoint: []\n    command:\n    - python3\n"))


def loaded(reader: Reader, text: str = STUDY, profile: str | None = None) -> Study:
    Path("study.yaml").write_text(text)
    return profiles.load("study.yaml", profile, None, reader)


def test_it_is_what_the_services_stand_for(reader: Reader, tmp_path: Path):
    study = loaded(reader)
    assert reader.asked == [str(tmp_path / "compose.yaml")]
    assert [cell.label for cell in study.cells] == ["shop (clients=1)", "shop (clients=16)"]
    options = study.cells[0].options
    assert (options.server, options.port) == (tuple(WHOLE.split()), 8000)
    assert options.server_env == {"REDIS": "redis", "DEBUG": "0"} and options.adapter.kind == "wrk"
    assert study.file.userland.model_dump() == {"kind": "image", "image": "shop:1.4"}
    assert study.sources["client_userland"].kind == "host"
    assert study.file.companions["redis"].saved == str(tmp_path / "redis.tar")
    assert study.file.companions["db"].after == ("redis",)
    assert study.file.compose is None


@pytest.mark.parametrize("load", ["wrk -c1 {address}", "[wrk, -c1, '{address}']", '{client: "wrk -c1 {address}"}'])
def test_a_load_is_a_command_line_or_options(reader: Reader, load: str):
    study = loaded(reader, STUDY.replace(LOAD, f"  load: {load}\n"))
    written = study.cells[0].options.client
    assert (written.split() if isinstance(written, str) else list(written)) == ["wrk", "-c1", "{address}"]


def test_what_a_run_keeps_needs_neither_the_file_nor_its_reader(reader: Reader, tmp_path: Path):
    study = loaded(reader)
    (tmp_path / "compose.yaml").unlink()
    assert check(parse(study.text, "kept")) == study
    kept = thaw(StoredStudy.model_validate_json(study_json(study)), study.text, tmp_path)
    assert kept == study
    assert "compose" not in json.loads(study_json(study))["file"]
    assert with_blocks(study, 7).file.repetitions.blocks == 7
    assert study.text.startswith("# From ") and "redis.volumes" in study.text.splitlines()[1]


SET = "    shm_size: '268435456'\n    sysctls:\n      net.core.somaxconn: '1024'\n"


def test_environments_have_of_the_services_settings_what_they_can_be_given(reader: Reader):
    reader.text = reader.text.replace("    image: shop:1.4\n", f"    image: shop:1.4\n{SET}")
    own = STUDY.replace("networks, sysctls]", "networks]").replace(
        "network: bridge}", "network: bridge}\n  small: {kind: docker, network: bridge, shm_size: 1MiB}"
    )
    arms = {arm.name: arm for arm in loaded(reader, own).arms}
    assert {name: arm.shm_size for name, arm in arms.items()} == {
        "native": 2**28, "bridge": 2**28, "small": 2**20, "native-again": 2**28,
    }  # fmt: skip
    assert arms["native"].sysctls == {} and arms["bridge"].sysctls == {"net.core.somaxconn": "1024"}
    assert loaded(reader).arms[1].sysctls == {}, "the study does without"
    nowhere = own.replace("kind: docker, network: bridge", "kind: netns").replace("shm_size: 1MiB", "shm_size: 2MiB")
    with raises_sentence(StudyError):
        loaded(reader, nowhere)


def test_another_compose_file_is_another_study(reader: Reader):
    before = loaded(reader)
    reader.text = reader.text.replace("'8000'", "'8001'").replace("target: 8000", "target: 8001")
    assert loaded(reader).text != before.text
    assert loaded(reader) != before


def test_what_it_brings_is_shown(reader: Reader, tmp_path: Path):
    for study in (loaded(reader), with_blocks(loaded(reader), 3)):
        brought = {(each.kind, each.place, each.value) for each in external_resources(study)}
        assert brought >= {
            (External.COMPOSE, "compose.file", str(tmp_path / "compose.yaml")),
            (External.IMAGE, "userland.image", "shop:1.4"),
            (External.IMAGE, "companions.redis.image", "redis:7"),
            (External.FILE, "companions.redis.saved", str(tmp_path / "redis.tar")),
            (External.FILE, "companions.redis.files./etc/redis", "/shop/conf"),
            (External.COMMAND, "workloads.shop.server", WHOLE),
        }


def test_a_profile_may_change_it(reader: Reader):
    change = "profiles:\n  quick:\n    compose: {load: {parameters: {clients: 3}}}\n    repetitions: {blocks: 1}\n"
    study = loaded(reader, STUDY + change, "quick")
    assert [cell.label for cell in study.cells] == ["shop"] and study.file.repetitions.blocks == 1
    assert study.text.splitlines()[0] == "# shop, profile 'quick'"
    assert check(parse(study.text, "kept")) == study
    assert len(reader.asked) == 1


def test_other_workloads_companions_and_clients_may_be_beside_it(reader: Reader, tmp_path: Path):
    more = (
        "workloads: {start: {kind: command, run: [/bin/true]}}\ncompanions: {mail: {image: mail}}\n"
        f"client_userland: {{kind: host, folder: {tmp_path}}}\n"
    )
    study = loaded(reader, STUDY + more)
    assert {cell.workload for cell in study.cells} == {"start", "shop"}
    assert {*study.file.companions} == {"mail", "redis", "db"}
    assert study.sources["client_userland"].folder == str(tmp_path)  # type: ignore[attr-defined]
    assert check(parse(study.text, "kept")) == study


def test_an_image_in_a_file_is_asked_for_what_the_service_leaves_to_it(reader: Reader, tmp_path: Path):
    reader.text = CONFIG
    study = loaded(reader, STUDY.replace("  service:", "  image: shop.tar\n  port: 9000\n  service:"))
    assert study.file.userland.model_dump() == {"kind": "saved-image", "path": str(tmp_path / "shop.tar")}
    options = study.cells[0].options
    assert (options.server, options.port) == (("/shop", *WHOLE.split()), 9000)


@pytest.mark.parametrize(
    ("old", "new", "at", "says"),
    [
        ("file: compose.yaml", "file: other.yaml", "file: other", "there is no file"),
        ("service: shop", "service: shp", "service: shp", "Did you mean 'shop'"),
        ("service: shop", "servise: shop", "servise", "Did you mean 'service'"),
        ("[deploy, ", "[", "file: compose", "unsupported keys (shop.deploy). To ignore them, use without: [deploy]"),
        ("redis:7", "redis:8", "saved:", "Did you mean 'redis:7'"),
        ("redis.tar", "none.tar", "saved:", "there is no file"),
        (LOAD, "", "compose:", "'load' is missing"),
        (LOAD, "  load: ''\n", "load:", "load: the command line is missing"),
        (LOAD, "  load: []\n", "load:", "load: the command line is missing"),
        (LOAD, "  load: {adapter: wrk}\n", "load:", "'client'"),
        (LOAD, "  load: true\n", "load:", "write a command line"),
        ("    adapter: wrk", "    adaptr: wrk", "adaptr", "Did you mean 'adapter'"),
        ("    adapter: wrk", "    adapter: wrkk", "adapter: wrkk", "Did you mean 'wrk'"),
        ("-c{clients}", "-c{clint}", "load:", "clint"),
        ("    adapter: wrk", "    server: /shop", "load:", "'server' does not belong to a load"),
        ("  file:", "  port: 0\n  file:", "port: 0", "must be from 1 to "),
        ("  file:", "  image: ./no.tar\n  file:", "image:", "is neither a file nor the name of an image"),
        ("baseline:", "userland: packages\nbaseline:", "userland:", "Remove it"),
        ("baseline:", "workloads: {shop: {kind: boot}}\nbaseline:", "workloads:", "compose: {load: {...}}"),
        ("baseline:", "workloads: 3\nbaseline:", "workloads:", "must be 'key: value' pairs"),
        ("baseline:", "companions: {db: {image: a}}\nbaseline:", "companions:", "a service of the Compose file"),
        (
            STUDY[STUDY.index("compose:") : STUDY.index("baseline")],
            "compose: 3\n",
            "compose:",
            "must be 'key: value' pairs",
        ),
        ("kind: docker, network: bridge", "kind: podman", "podman", "cannot reach the study's companions"),
    ],
)
def test_a_mistake_is_told_with_its_line(reader: Reader, old: str, new: str, at: str, says: str):
    text = STUDY.replace(old, new, 1)
    assert text != STUDY
    if "image: ." in new:
        reader.text = CONFIG
    with pytest.raises(StudyError) as error:
        loaded(reader, text)
    told = [line for line in str(error.value).splitlines() if says in line]
    assert len(told) == 1 and told[0].startswith(f"study.yaml:{line_of(text, at)}: "), str(error.value)


def test_wrong_studies_are_told_before_the_file_is_read(reader: Reader):
    for wrong in ("userland: packages\n", "workloads: {shop: {kind: boot}}\n"):
        with pytest.raises(StudyError):
            loaded(reader, STUDY + wrong)
    assert reader.asked == []


def test_a_service_without_one_port_needs_it(reader: Reader):
    reader.text = reader.text.replace("    - published: 8080\n      target: 8000\n", "    - '1'\n    - '2'\n")
    with raises_sentence(StudyError):
        loaded(reader)


def test_a_reader_that_is_not_there_is_told(reader: Reader):
    def none(file: str) -> str:
        raise Unavailable("docker-compose is not installed")

    Path("study.yaml").write_text(STUDY)
    for each in (none, None):
        with pytest.raises(Unavailable, match=r"study\.yaml:[45]: "):
            profiles.load("study.yaml", None, None, each)


def test_studies_without_the_key_read_nothing(reader: Reader):
    text = STUDY[: STUDY.index("compose:")] + STUDY[STUDY.index("baseline:") :]
    study = loaded(reader, text + "workloads: {cpu: {kind: sysbench-cpu}}\ncompose: null\n")
    assert reader.asked == [] and study.compose == ""


def test_keys_that_are_merged_in_are_read(reader: Reader):
    text = STUDY.replace("compose:\n  file: compose.yaml\n", "compose:\n  <<: {file: compose.yaml}\n")
    assert loaded(reader, text).cells == loaded(reader).cells


@pytest.mark.parametrize(
    ("old", "new", "good"),
    [
        ("seed", "seed", True),
        (LOAD, "  load: wrk\n", True),
        (LOAD, "  load: [wrk, 1]\n", True),
        (LOAD, "  load: {client: wrk, adapter: wrk}\n", True),
        (LOAD, "", False),
        (LOAD, "  load: {client: wrk, adaptr: wrk}\n", False),
        ("service: shop", "servise: shop", False),
    ],
)
def test_the_schema_knows_it(old: str, new: str, good: bool):
    text = YAML(typ="safe", pure=True).load(STUDY.replace(old, new))
    wrong = [error.message for error in Draft202012Validator(json_schema()).iter_errors(text)]
    assert bool(wrong) is not good
