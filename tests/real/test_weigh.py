"""`weighbridge weigh` as a user calls it: own programs, own images, and nothing left behind."""

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from weighbridge.engines.layers import file_layer, image_archive
from weighbridge.model.userland import Userland

from .machine import Machine
from .test_supporting_services import saved_redis

STATIC = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    char where[256];
    printf("{\\"user\\": %d, \\"group\\": %d, \\"words\\": %d}\\n", getuid(), getgid(), count);
    return !getenv("SHOP") || !getcwd(where, sizeof where);
}
"""


def weigh(folder: Path, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    options = ("--out", str(folder / "run"), "--cpu-idle", "halt")  # two tests of test_polling.py poll
    argv = [sys.executable, "-m", "weighbridge", "weigh", *options, *words]
    return subprocess.run(argv, cwd=cwd or folder, capture_output=True, text=True, timeout=300, check=False)


def values(folder: Path, metric: str) -> dict[str, list[float]]:
    """Every value of a metric, by environment."""
    found: dict[str, list[float]] = {}
    with sqlite3.connect(folder / "run/run.sqlite") as store:
        rows = store.execute(
            "select t.environment, m.value from trial t join measurement m on m.trial = t.id where m.metric = ?"
            " and t.block > 0", (metric,),
        )  # fmt: skip
        for environment, value in rows:
            found.setdefault(environment, []).append(value)
    return found


def test_a_program_of_this_machine(tmp_path: Path, machine: Machine):
    (tmp_path / "program").write_text(
        "echo x > out; n=0; while [ $n -lt 20000 ]; do n=$((n + 1)); done; echo '{\"n\": 5}'\n"
    )
    export = tmp_path / "out.json"
    done = weigh(
        tmp_path, "--blocks", "3", "--in", "docker,netns", "--metric", "n=json:$.n,higher,1/s", "--check",
        "test -s out", "--export-json", str(export), "--", "sh", "program",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "out").exists()
    printed = values(tmp_path, "n")
    assert {*printed} == {"native", "native-again", "docker", "netns"}
    assert {value for each in printed.values() for value in each} == {5.0}
    cpu, time = values(tmp_path, "cpu_user"), values(tmp_path, "time")
    assert all(len(each) == 3 and min(each) > 0 for each in time.values()), time
    assert {*cpu} == {*time}
    assert json.loads(export.read_text())["study"] == "weigh-sh-program"


def test_a_program_in_tmp(tmp_path: Path, machine: Machine):
    """In /tmp itself, over which every environment mounts a /tmp of its own."""
    program = Path("/tmp") / f"weighbridge-test-program-{os.getpid()}"
    program.write_text(f"#!/bin/sh\ntest -s {program} && cp {program} {program}-new && cat {program}-new\n")
    program.chmod(0o755)
    try:
        environments = "netns,bubblewrap,docker"
        done = weigh(tmp_path, "--blocks", "1", "--in", environments, "--", f"./{program.name}", cwd=program.parent)
        assert done.returncode == 0, done.stderr
        assert not program.with_name(f"{program.name}-new").exists()
    finally:
        program.unlink()
    assert {*values(tmp_path, "time")} == {"native", "native-again", *environments.split(",")}


def test_an_image_without_shell_and_libc(tmp_path: Path, machine: Machine):
    save_image(tmp_path, STATIC)
    words = ("--metric", "user=json:$.user,lower,count", "--metric", "words=json:$.words,lower,count")
    done = weigh(tmp_path, "--blocks", "2", "--image", "shop.tar", *words, "--", "one")
    assert done.returncode == 0, done.stderr
    assert {value for each in values(tmp_path, "user").values() for value in each} == {1234.0}
    assert {value for each in values(tmp_path, "words").values() for value in each} == {3.0}
    assert {*values(tmp_path, "user")} == {"native", "native-again", "docker"}


SERVER = """
#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    int at = socket(AF_INET, SOCK_STREAM, 0), on = 1, one;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(atoi(words[count - 1]))};
    if (count != 3) return 9;
    setsockopt(at, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(at, (struct sockaddr *)&here, sizeof here) || listen(at, 64)) return 1;
    while ((one = accept(at, 0, 0)) >= 0) { if (write(one, "7", 1) < 0) return 2; close(one); }
    return 3;
}
"""
CLIENT = "import socket, sys; print('[', socket.create_connection(sys.argv[1:]).recv(1).decode(), ']', sep='')"


def test_the_server_of_an_image_and_a_client_of_this_machine(tmp_path: Path, machine: Machine):
    """The image has neither shell nor Python; the client is nowhere in it."""
    save_image(tmp_path, SERVER)
    done = weigh(
        tmp_path, "--image", "shop.tar", "--server", "{port}", "--blocks", "3", "--in", "netns,bridge",
        "--metric", "n=json:$[0],higher,1/s", "--", "/usr/bin/python3", "-c", CLIENT, "{address}", "{port}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    printed = values(tmp_path, "n")
    assert {*printed} == {"native", "native-again", "netns", "bridge"}
    assert {value for each in printed.values() for value in each} == {7.0}


def test_a_server_that_can_listen_on_one_port_alone(tmp_path: Path, machine: Machine):
    _build(tmp_path, SERVER.replace("count != 3", "count != 2"))
    words = (
        "--server", "./shop 8123", "--ready", "8123", "--blocks", "2", "--in", "netns,host,bridge,published",
        "--metric", "n=json:$[0],higher,1/s", "--", "python3", "-c", CLIENT, "{address}", "{port}",
    )  # fmt: skip
    done = weigh(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    printed = values(tmp_path, "n")
    assert {*printed} == {"native", "native-again", "netns", "host", "bridge", "published"}
    assert {value for each in printed.values() for value in each} == {7.0}
    with socket.create_server(("127.0.0.1", 8123)):
        taken = weigh(tmp_path, "--out", str(tmp_path / "other"), *words)
    assert taken.returncode == 4, taken.stderr
    assert "8123" in taken.stderr and "Traceback" not in taken.stderr


COMPOSED = """
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    int at = socket(AF_INET, SOCK_STREAM, 0), on = 1, one, asked, got;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(8123)}, there = here;
    char answer[64], *name = getenv("COUNTER");
    struct hostent *found = name ? gethostbyname(name) : 0;
    if (count != 2 || strcmp(words[1], "serve") || !found) return 9;
    memcpy(&there.sin_addr, found->h_addr, 4);
    there.sin_port = htons(6379);
    setsockopt(at, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(at, (struct sockaddr *)&here, sizeof here) || listen(at, 64)) return 1;
    while ((one = accept(at, 0, 0)) >= 0) {
        asked = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(asked, (struct sockaddr *)&there, sizeof there)) return 2;
        if (write(asked, "INCR n\\r\\n", 8) < 0 || (got = read(asked, answer, sizeof answer)) < 2) return 3;
        if (write(one, answer + 1, got - 1) < 0) return 4;
        close(asked);
        close(one);
    }
    return 5;
}
"""
COMPOSE = """
version: "3"
services:
  shop:
    image: shop:1
    command: serve
    environment: {COUNTER: redis}
    depends_on: [redis]
    ports: ["8080:8123"]
    restart: always
  redis:
    image: redis:7
    command: [/usr/bin/redis-server, --save, "", --protected-mode, "no"]
    expose: ["6379"]
"""


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is not installed")
def test_a_service_of_a_compose_file(tmp_path: Path, small_userland: Userland, machine: Machine):
    """Its program has one port, which it is not told, and counts in redis, which it finds by its name."""
    save_image(tmp_path, COMPOSED, ["/shop"])
    (tmp_path / "redis.tar").write_bytes(saved_redis(small_userland))
    (tmp_path / "compose.yml").write_text(COMPOSE)
    words = (
        "--compose", "compose.yml", "--service", "shop", "--saved", "shop:1=shop.tar", "--saved", "redis:7=redis.tar",
        "--blocks", "2", "--metric", "n=json:$[0],higher,count",
        "--", "/usr/bin/python3", "-c", CLIENT.replace("recv(1)", "recv(9)"), "{address}", "{port}",
    )  # fmt: skip
    refused = weigh(tmp_path, *words)
    assert refused.returncode == 3 and "shop.restart" in refused.stderr, refused.stderr
    done = weigh(tmp_path, "--without", "restart", *words)
    assert done.returncode == 0, done.stderr
    assert "shop.restart" in done.stderr
    counted = values(tmp_path, "n")
    assert {*counted} == {"native", "native-again", "netns", "bridge"}
    assert sorted(value for each in counted.values() for value in each) == [float(n) for n in range(1, 9)]


def _build(folder: Path, text: str) -> Path:
    """The static program ``shop`` in a folder."""
    source, program = folder / "shop.c", folder / "shop"
    source.write_text(text)
    subprocess.run(["cc", "-static", "-w", "-o", str(program), str(source)], check=True, timeout=60)
    return program


def save_image(folder: Path, text: str, entry_point: Sequence[str] = ("/shop", "-v")) -> None:
    """``shop.tar``, an image that has this static program alone."""
    program = _build(folder, text).read_bytes()
    image = image_archive("shop:1", {}, "amd64", [file_layer("/shop", program)])
    (folder / "shop.tar").write_bytes(_configured(image, entry_point))


def _configured(image: bytes, entry_point: Sequence[str]) -> bytes:
    """The image with an entry point, a user, a folder and a variable."""
    import io
    import tarfile

    made = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(image)) as old, tarfile.open(fileobj=made, mode="w") as new:
        for member in old.getmembers():
            content = old.extractfile(member).read()  # type: ignore[union-attr]
            if member.name == "config.json":
                told = json.loads(content)
                told["config"] |= {
                    "Entrypoint": [*entry_point],
                    "User": "1234:77",
                    "WorkingDir": "/tmp",
                    "Env": ["SHOP=1"],
                }
                content = json.dumps(told).encode()
                member.size = len(content)
            new.addfile(member, io.BytesIO(content))
    return made.getvalue()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--", "sh", "-c", "setsid sleep 60 & exit 0"], "keep it in the foreground"),
        (["--", "touch", "/usr/weighbridge-was-here"], "read-only"),
    ],
)
def test_what_does_not_work_is_told_in_a_sentence(tmp_path: Path, words: list[str], says: str):
    done = weigh(tmp_path, "--in", "netns", "--blocks", "1", *words)
    assert done.returncode == 9, done.stderr
    assert "Traceback" not in done.stderr and says in done.stderr.lower()
    assert not Path("/usr/weighbridge-was-here").exists()


@pytest.mark.skipif(os.path.ismount("/tmp"), reason="another file system is at /tmp")
def test_a_killed_one_leaves_nothing_that_clean_does_not_find(tmp_path: Path, machine: Machine):
    argv = [sys.executable, "-m", "weighbridge", "weigh", "--out", str(tmp_path / "run"), "--", "sleep", "0.2"]
    running = subprocess.Popen(argv, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    for line in running.stderr:
        if "trials done" in line:
            break
    running.kill()
    running.wait()
    clean = [sys.executable, "-m", "weighbridge", "clean"]
    assert subprocess.run([*clean, "--check"], timeout=120, capture_output=True, check=False).returncode == 1
    subprocess.run(clean, check=True, timeout=120, capture_output=True)
    assert not [*Path("/dev/shm").glob("weighbridge-*-*")], "a layer in memory is the engine's"
