"""The Dockerfile, built upon Debian's Python, weighs an image of the engine beside it, and says where it is."""

import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import docker
import docker.errors
import pytest

from weighbridge import build_once
from weighbridge.linux import own_container
from weighbridge.model.userland import Userland

from .users_engine import own_engine

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
CACHE = Path.home() / ".cache/weighbridge/systems"
PYTHON = "3.11"
BASE = ("mmdebstrap", "--quiet", "--variant=apt", "--include=python3-venv,iproute2")
MAKE_VENV = '--customize-hook=chroot "$1" python3 -m venv /venv'
"""As the usual images of Python have pip: Debian's own refuses to install beside its packages."""
OPTIONS = {"privileged": True, "pid_mode": "host", "network_mode": "host", "cgroupns": "host"}


def kept() -> Path:
    """A folder with the base image and the wheels of our dependencies, kept in the user's cache."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    constraints = ROOT / "constraints.txt"

    def build(work: Path) -> None:
        download = (
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--only-binary=:all:",
            "--python-version",
            PYTHON,
        )
        subprocess.run([*download, "-c", constraints, "-d", work / "dist", *dependencies], check=True)
        subprocess.run([*BASE, MAKE_VENV, "bookworm", work / "base.tar"], check=True)

    key = hashlib.sha256(repr((*BASE, MAKE_VENV, dependencies, constraints.read_text())).encode()).hexdigest()[:16]
    file = CACHE / f"image-{key}" / "base.tar"
    return build_once.ensure_file(file, "the base of an image", print, build).parent


@pytest.fixture(scope="module")
def engine(userland: Userland, tmp_path_factory: pytest.TempPathFactory) -> Iterator[docker.DockerClient]:
    """An engine with Weighbridge's image."""
    context = tmp_path_factory.mktemp("context")
    shutil.copytree(kept() / "dist", context / "dist")
    build = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", context / "dist", ROOT)
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    shutil.copy(ROOT / "Dockerfile", context)
    shutil.copy(ROOT / ".dockerignore", context)
    with own_engine(userland, tmp_path_factory.mktemp("engine")) as client:
        with (kept() / "base.tar").open("rb") as data:
            chunks = iter(lambda: data.read(2**20), b"")
            path = "ENV PATH=/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
            client.api.import_image_from_stream(chunks, repository="base", tag="1", changes=[path])
        arguments = {"BASE": "base:1", "PIP_NO_INDEX": "1"}
        client.images.build(path=str(context), tag="weighbridge", buildargs=arguments, rm=True, network_mode="none")
        yield client


def weighbridge(engine: docker.DockerClient, folder: Path, *words: str, **options) -> tuple[int, str, str]:
    """Run our image with these words; gives its exit code and both outputs."""
    socket = str(engine.api.get_adapter(engine.api.base_url).socket_path)
    container = engine.containers.create(
        "weighbridge", [*words], working_dir="/work", environment={"WEIGHBRIDGE_BESIDE_OTHERS": "yes"},
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
    assert (
        not row["ready"] and row["remedy"] == "start it with --privileged --pid host --cgroupns host --network host"
    )


def test_it_weighs_an_image_of_the_engine_beside_it(engine: docker.DockerClient, tmp_path: Path):
    weigh = ("weigh", "--image", "foreign:1", "--in", "docker", "--blocks", "2", "--rehearsal", "--out", "run")
    words = (*weigh, "--export-json", "run.json", "--", "true")
    code, _, errors = weighbridge(engine, tmp_path, *words, **OPTIONS)
    assert code == 0, errors
    assert "Weighbridge runs in a Docker container" in errors
    report = json.loads((tmp_path / "run.json").read_text())
    (cost,) = [each for each in report["costs"] if each["environment"] == "docker" and each["metric"] == "time"]
    assert cost["blocks"] == 2 and cost["cost"] > 0
