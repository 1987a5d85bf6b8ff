"""The scripts of a kit as a shell reads them, and its programs for jq."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from weighbridge.features.kit.kit import kit
from weighbridge.features.kit.scripts import _script
from weighbridge.model.command import Command, Completed
from weighbridge.study.loader import load
from weighbridge.workloads.iperf3 import PLUGIN as IPERF3

OUTPUTS = sorted((Path(__file__).parents[1] / "workloads/data/iperf3").glob("iperf3-*p*.json"))
WORDS = ("'; touch x; '", "$(touch x)", "${HOME}", "a\nexit 3\n", "`id`", "\\", "-n", "", "\t é \x01", '"')


@pytest.mark.parametrize("name", ["first-look", "docker-networks", "native-vs-container-apps"])
def test_shells_take_every_script(name: str, tmp_path: Path):
    scripts = {path: file.data for path, file in kit(load(name)).items() if path.endswith(".sh")}
    for path, data in scripts.items():
        subprocess.run(["sh", "-n"], input=data, check=True, capture_output=True)
        place = tmp_path / path.replace("/", "_")
        place.write_bytes(data)
    if shutil.which("shellcheck"):
        done = subprocess.run(["shellcheck", *tmp_path.iterdir()], capture_output=True, text=True, check=False)
        assert done.stdout == ""


def test_a_program_gets_the_words_that_it_was_given(tmp_path: Path):
    script = _script("\n".join(WORDS), Command(("printf", "%s|", *WORDS), env={"GIVEN": WORDS[0]}), {}, "", ends=True)
    done = subprocess.run(["sh"], input=script, capture_output=True, check=True, cwd=tmp_path)
    assert done.stdout.decode() == "".join(f"{word}|" for word in WORDS)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda path: path.name)
def test_jq_reads_the_first_metric(output: Path):
    data = output.read_bytes()
    document = json.loads(data)
    if "error" in document or "sum_received" not in document["end"]:
        pytest.skip("a test that failed")
    udp = document["start"]["test_start"]["protocol"] == "UDP"
    options = IPERF3.options.model_validate({"protocol": "udp", "bitrate": "1Mbit/s"} if udp else {})
    first = IPERF3.metrics(options)[0]
    found = IPERF3.parse(options, {"client": Completed(("iperf3",), 0, data, b"", 1.0)}).measurements
    done = subprocess.run(["jq", IPERF3.jq(options)], input=data, capture_output=True, check=True)
    assert [each.value for each in found if each.metric == first] in ([], [pytest.approx(float(done.stdout))])
