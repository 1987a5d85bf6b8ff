"""The Dockerfile, built upon Debian's Python, weighs an image of the engine beside it, and says where it is."""

import json
from collections.abc import Iterator
from pathlib import Path

import docker
import docker.errors
import pytest

from weighbridge.linux import own_container
from weighbridge.model.userland import Userland

from . import own_image
from .users_engine import own_engine

pytestmark = pytest.mark.long
OPTIONS = {"privileged": True, "pid_mode": "host", "network_mode": "host", "cgroupns": "host"}


@pytest.fixture(scope="module")
def engine(userland: Userland, tmp_path_factory: pytest.TempPathFactory) -> Iterator[docker.DockerClient]:
    """An engine with Weighbridge's image."""
    with own_engine(userland, tmp_path_factory.mktemp("engine")) as client:
        own_image.build(client, tmp_path_factory.mktemp("context"))
        yield client


def weighbridge(engine: docker.DockerClient, folder: Path, *words: str, **options) -> tuple[int, str, str]:
    """Run our image with these words; gives its exit code and both outputs."""
    socket = str(engine.api.get_adapter(engine.api.base_url).socket_path)
    container = engine.containers.create(
        own_image.IMAGE, [*words], working_dir="/work", environment={"WEIGHBRIDGE_BESIDE_OTHERS": "yes"},
        volumes={socket: {"bind": "/var/run/docker.sock"}, str(folder): {"bind": "/work"}}, **options,
    )  # fmt: skip
    try:
        try:
            container.start()
        except docker.errors.APIError as error:
            if options.get("privileged") and "unable to apply caps" in str(error):
                pytest.skip("this machine's root may not give a container every capability")
            raise
        code = container.wait(timeout=300)["StatusCode"]
        return code, container.logs(stderr=False).decode(), container.logs(stdout=False).decode()
    finally:
        container.remove(force=True)


def test_it_says_where_it_is_and_what_would_help(engine: docker.DockerClient, tmp_path: Path):
    code, out, errors = weighbridge(engine, tmp_path, "doctor", "--json", network_mode="none")
    assert code == 0, errors
    row = next(row for row in json.loads(out)["machine"] if row["name"] == own_container.FACT)
    missing = ("--privileged", "--pid host", "--network host", "-v /run/weighbridge:/run/weighbridge")
    assert not row["ready"] and row["remedy"].startswith("start the container with ")
    assert [option for option in missing if option not in row["remedy"]] == []  # --cgroupns: of version 2 alone


def test_it_weighs_an_image_of_the_engine_beside_it(engine: docker.DockerClient, tmp_path: Path):
    weigh = ("weigh", "--image", "foreign:1", "--in", "docker", "--blocks", "2", "--rehearsal", "--out", "run")
    words = (*weigh, "--export-json", "run.json", "--", "true")
    code, _, errors = weighbridge(engine, tmp_path, *words, **OPTIONS)
    assert code == 0, errors
    assert "Weighbridge runs in a Docker container" in errors
    report = json.loads((tmp_path / "run.json").read_text())
    (cost,) = [each for each in report["costs"] if each["environment"] == "docker" and each["metric"] == "time"]
    assert cost["rounds"] == 2 and cost["cost"] > 0
