"""A study that names a Compose file is run, and continued without it."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from weighbridge.model.userland import Userland

from .machine import Machine
from .test_supporting_services import saved_redis
from .test_weigh import CLIENT, COMPOSE, COMPOSED, save_image, values
from .weighing import weighbridge

STUDY = """\
study: shop
question: What does a bridge cost the shop?
compose:
  file: {folder}/compose.yml
  service: shop
  without: [restart]
  saved: {{"shop:1": {folder}/shop.tar, "redis:7": {folder}/redis.tar}}
  load:
    client: [/usr/bin/python3, -c, {client}, "{{address}}", "{{port}}"]
    metrics: {{n: {{json: "$[0]", better: higher, unit: count}}}}
baseline: native
aa: false
environments:
  native: {{kind: native}}
  bridge: {{kind: docker, network: bridge}}
repetitions: {{blocks: 2}}
"""


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is not installed")
def test_a_run_of_it_needs_the_compose_file_once(tmp_path: Path, small_userland: Userland, machine: Machine):
    save_image(tmp_path, COMPOSED.replace("8123", "8127"), ["/shop"])
    (tmp_path / "redis.tar").write_bytes(saved_redis(small_userland))
    compose, study, run = tmp_path / "compose.yml", tmp_path / "shop.yaml", tmp_path / "run"
    compose.write_text(file := COMPOSE.replace("8123", "8127"))
    client = CLIENT.replace("recv(1)", "recv(9)").replace("{", "{{").replace("}", "}}")
    study.write_text(STUDY.format(folder=tmp_path, client=repr(client)))
    planned = weighbridge("plan", study, "--yes")
    assert planned.code == 0, planned.stderr
    for brought in (f"{compose} (compose.file)", "redis:7 (companions.redis.image)"):
        assert brought in planned.stdout
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done.stderr
    assert f"Compose file {compose}" in done.stderr

    compose.write_text(file.replace("serve", "other"))
    weighbridge("run", study, "--out", run, "--yes").must_fail(6, "another study, of another version of it")
    compose.unlink()
    weighbridge("run", study, "--yes").must_fail(3, f"shop.yaml:4: compose: there is no file {compose}")
    continued = weighbridge("run", "--out", run, "--blocks", "3", "--yes")
    assert continued.code == 0, continued.stderr
    counted = values(tmp_path, "n")
    assert {name: len(each) for name, each in counted.items()} == {"native": 3, "bridge": 3}
    assert all(value >= 1 for each in counted.values() for value in each)
    with sqlite3.connect(run / "run.sqlite") as store:
        [text] = store.execute("select value from run where key = 'study_text'").fetchone()
    assert f"{compose}, service shop" in text and "compose:" not in text and "server:" in text
    assert weighbridge("clean", "--check").code == 0
