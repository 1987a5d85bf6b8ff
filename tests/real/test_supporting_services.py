"""Services that stay where they are: a counter in redis that programs of every environment reach by its name."""

import io
import re
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path

from weighbridge.engines.layers import image_archive
from weighbridge.model.userland import Userland

from .machine import Machine

ASK = """
import socket
server = socket.create_connection(("counter", 6379))
server.sendall(b"INCR n\\r\\n")
print("n", server.recv(99).decode()[1:].strip())
"""
STUDY = """
study: companions
question: Does every environment reach the companions?
userland: {{kind: host}}
baseline: native
environments:
  native: {{kind: native}}
  netns: {{kind: netns}}
  host: {{kind: docker, network: host}}
  bridge: {{kind: docker}}
companions:
  counter:
    image: redis:7
    saved: {saved}
    command: [/usr/bin/redis-server, --save, "", --protected-mode, "no"]
    port: 6379
    volumes: {{/data: data}}
  second:
    image: redis:7
    saved: {saved}
    command: [/usr/bin/redis-server, --save, ""]
    after: [counter]
    healthcheck: {{test: [/usr/bin/redis-cli, -h, counter, ping]}}
workloads:
  ask:
    kind: command
    run: /usr/bin/python3 /tmp/ask.py
    files: {{/tmp/ask.py: {ask}}}
    metrics: {{n: {{regex: 'n (\\d+)', better: higher, unit: count}}}}
repetitions: {{blocks: 2}}
"""


def weighbridge(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "weighbridge", *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def saved_redis(userland: Userland) -> bytes:
    """An image of redis alone, with the libraries that it needs."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        names: dict[str, None] = {}
        for program in ("/usr/bin/redis-server", "/usr/bin/redis-cli"):
            argv = ["chroot", str(userland.root), "ldd", program]
            told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
            names |= dict.fromkeys([program, *re.findall(r"(/\S+) \(0x", told)])
        for name in names:
            argv = ["chroot", str(userland.root), "realpath", name]
            real = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
            archive.add(f"{userland.root}{real}", arcname=name.lstrip("/"))
    return image_archive("redis:7", {}, "amd64", [layer.getvalue()])


def test_every_environment_counts_in_one_companion(tmp_path: Path, small_userland: Userland, machine: Machine):
    saved, ask = tmp_path / "redis.tar", tmp_path / "ask.py"
    saved.write_bytes(saved_redis(small_userland))
    ask.write_text(ASK)
    (tmp_path / "s.yaml").write_text(STUDY.format(saved=saved, ask=ask))
    done = weighbridge(tmp_path, "run", "s.yaml", "--out", "run", "--yes")
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(tmp_path / "run/run.sqlite") as store:
        rows = store.execute(
            "select t.environment, m.value from trial t join measurement m on m.trial = t.id where m.metric = 'n'"
        ).fetchall()
        images = dict(store.execute("select key, value from fact where scope = 'companions'").fetchall())
        ways = dict(store.execute("select scope, value from fact where key = 'way to the companions'").fetchall())
    assert {environment for environment, _ in rows} == {"native", "native-again", "netns", "host", "bridge"}
    assert sorted(value for _, value in rows) == [float(number) for number in range(1, 11)]
    assert {*images} == {"counter", "second"} and len({*images.values()}) == 1
    assert {scope.partition("/")[0]: way for scope, way in ways.items()} == {
        "native": "host to bridge", "native-again": "host to bridge", "host": "host to bridge",
        "netns": "routed by the host to the bridge", "bridge": "on the same bridge",
    }  # fmt: skip
    assert weighbridge(tmp_path, "clean", "--check").returncode == 0


def test_a_companion_that_ends_refuses_the_run(tmp_path: Path, small_userland: Userland, machine: Machine):
    saved, ask = tmp_path / "redis.tar", tmp_path / "ask.py"
    saved.write_bytes(saved_redis(small_userland))
    ask.write_text(ASK)
    text = STUDY.format(saved=saved, ask=ask).replace('"", --protected-mode', '"", --no-such-option')
    (tmp_path / "s.yaml").write_text(text)
    done = weighbridge(tmp_path, "run", "s.yaml", "--out", "run", "--yes")
    assert done.returncode == 4, done.stderr
    assert "supporting service counter" in done.stderr and "Traceback" not in done.stderr
