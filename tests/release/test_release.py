"""`make dist`, and its wheel where nothing else is."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from weighbridge.runner.continuity import LAUNCHER
from weighbridge.store.run import RunStore

from .released import MACHINE, ROOT, must, new_environment, path_of, run, script, wheel_in

dist = script("dist")
built = [pytest.mark.real, pytest.mark.side_by_side]
NAMED = ("unshare", "nsenter", "ip", "env", "sh", "true")
"""All that `weigh` in a network namespace needs of PATH, but for the program that is weighed."""


def test_the_changelog_has_a_section_to_release():
    title, text = dist.changelog_section((ROOT / "CHANGELOG.md").read_text(), "99.0")
    assert title == "[Unreleased]" and "\n- " in text
    both = "# C\n\n## [Unreleased]\n\n## [1.2] - 2026-01-01\n\n- a\n\n## [1.1]\n\n- b\n"
    assert dist.changelog_section(both, "1.2") == ("[1.2]", "- a\n")
    with pytest.raises(dist.ReleaseError, match=r"neither of 1\.3"):
        dist.changelog_section(both, "1.3")


def test_a_program_with_a_loader_is_told_from_a_static_one(tmp_path: Path):
    assert not dist.is_static(Path(sys.executable).resolve().read_bytes())


@pytest.mark.parametrize(
    ("machines", "compilers", "says"),
    [("riscv64", ("cc",), "there are no wheels for riscv64"), ("x86_64,aarch64", ("cc",), "--machines")],
)
def test_what_cannot_be_built_is_refused_before_anything_is(tmp_path, monkeypatch, machines, compilers, says):
    monkeypatch.setattr(dist.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(dist.shutil, "which", lambda name: name if name in compilers else None)
    with pytest.raises(dist.ReleaseError, match=says):
        dist.release(tmp_path / "dist", machines.split(","), dirty=True)
    assert list(tmp_path.iterdir()) == []


class TestBuilt:
    """Of what was built."""

    pytestmark = built

    def test_make_dist_runs_the_script(self):
        assert ".venv/bin/python scripts/dist.py --dirty" in must("make", "-n", "dist", "DIST=--dirty", cwd=ROOT)

    def test_a_release_is_wheels_source_checksums_and_changes(self, release: tuple[Path, str]):
        out, said = release
        names = {path.name for path in out.iterdir()}
        wheels, (source,) = {name for name in names if ".whl" in name}, [name for name in names if ".tar" in name]
        assert len(wheels) == 2 and names == {*wheels, source, dist.CHECKSUMS, dist.CHANGES}
        assert "nothing was uploaded" in said and all(name in said for name in (*wheels, source))
        sums = dict(reversed(line.split("  ")) for line in (out / dist.CHECKSUMS).read_text().splitlines())
        assert sums == {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in (*wheels, source)}
        with tarfile.open(out / source) as packed:
            inside = {name.partition("/")[2] for name in packed.getnames()}
        assert {"hatch_build.py", "LICENSE", "src/weighbridge/launcher/source/main.c", "tests/conftest.py"} <= inside

    @pytest.mark.parametrize("machine", dist.MACHINES)
    def test_a_wheel_has_the_launcher_for_its_processor_and_its_source(self, release, machine: str):
        wheel = wheel_in(release[0], machine)
        path, program = dist.launcher_in(wheel)
        assert int.from_bytes(program[18:20], "little") == dist.MACHINES[machine] and dist.is_static(program)
        platforms = f"manylinux2014_{machine}.manylinux_2_17_{machine}.musllinux_1_1_{machine}"
        assert wheel.name.endswith(f"-py3-none-{platforms}.whl")
        files = must(sys.executable, "-m", "zipfile", "-l", wheel)
        sources = {"workloads/stream/programs/stream/main.c", "userland/projects/coherence/pom.xml"}
        assert all(f"weighbridge/{each}" in files for each in ("launcher/source/main.c", *sources))
        assert path in files
        assert f"launcher for {machine}: {hashlib.sha256(program).hexdigest()[:16]}" in release[1]

    def test_another_build_gives_the_same_bytes(self, release, tmp_path: Path):
        """From another folder, with another umask and time zone, at another time."""
        out, _ = release
        (source,) = out.glob("*.tar.gz")
        with tarfile.open(source) as packed:
            packed.extractall(tmp_path / "elsewhere", filter="data")
        (folder,) = (tmp_path / "elsewhere").iterdir()
        (folder / "PKG-INFO").unlink()  # what the archive has beside the checkout
        epoch = os.environ.get("SOURCE_DATE_EPOCH") or must("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
        variables = {**os.environ, "SOURCE_DATE_EPOCH": epoch, "TZ": "Asia/Kathmandu", "WEIGHBRIDGE_WHEEL": MACHINE}
        build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path / "again", folder]
        subprocess.run(build, env=variables, umask=0o077, check=True, stdout=subprocess.DEVNULL)
        again = {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
        assert again.keys() == {source.name, wheel_in(out).name}
        assert [name for name, data in again.items() if (out / name).read_bytes() != data] == []

    def test_weigh_needs_no_compiler_and_nothing_of_path_but_what_is_named(self, release, program, tmp_path: Path):
        home = tmp_path / "home"
        home.mkdir()
        env = {
            "HOME": str(home), "PATH": str(path_of(tmp_path / "bin", *NAMED)), "LANG": "C.UTF-8",
            "WEIGHBRIDGE_BESIDE_OTHERS": "yes", "WEIGHBRIDGE_REHEARSAL": "yes",
        }  # fmt: skip
        digest = hashlib.sha256(dist.launcher_in(wheel_in(release[0]))[1]).hexdigest()[:16]
        version, launcher = must(program, "--version", env=env).splitlines()
        assert version.startswith("weighbridge ") and launcher.split()[:2] == ["launcher", digest]
        weigh = (program, "weigh", "--in", "netns", "--blocks", "1", "--cpu-idle", "halt", "--out", tmp_path / "run")
        told = run(*weigh, "--export-json", tmp_path / "run.json", "--", "true", cwd=tmp_path, env=env)
        assert told.returncode == 0, told.stderr
        assert "building" not in told.stderr
        report = json.loads((tmp_path / "run.json").read_text())
        assert {"native", "netns"} <= {*report["environments"]}
        with RunStore(tmp_path / "run") as store:
            assert [value for _, key, value, *_ in store.facts() if key == LAUNCHER] == [digest]

    def test_without_a_launcher_or_a_compiler_the_reason_is_told(self, release, tmp_path: Path):
        program = new_environment(tmp_path / "venv", wheel_in(release[0]))
        (folder,) = (tmp_path / "venv").glob("lib/*/site-packages/weighbridge/launcher/built")
        shutil.rmtree(folder)
        env = {"HOME": str(tmp_path), "PATH": str(path_of(tmp_path / "bin", *NAMED))}
        told = run(program, "weigh", "--in", "netns", "--rehearsal", "--blocks", "1", "--", "true", env=env)
        assert told.returncode == 4 and "cc, which builds the sites' launcher" in told.stderr
        assert "not built: cc" in must(program, "--version", env=env)
        env["PATH"] = str(path_of(tmp_path / "none"))
        told = run(program, "weigh", "--in", "netns", "--rehearsal", "--blocks", "1", "--", sys.executable, env=env)
        assert told.returncode == 4 and "unshare is not installed" in told.stderr
