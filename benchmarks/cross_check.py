"""Measure the same costs twice in one session: with Weighbridge, and by hand with other people's tools.

    python benchmarks/cross_check.py [--only NAME ...] [--rounds N] [--root TAR] [--note TEXT] [--page]

Each cost of `CASES` is measured in four passes: by hand, Weighbridge, by hand, Weighbridge. Slow drift of the machine
therefore reaches both methods. *By hand* is a list of shell lines that an engineer would type (hyperfine, iperf3,
netperf, redis-benchmark, sysbench, fio, `docker exec`, `kubectl exec`), in turn without and with the isolation. Its
interval is Student's t of the log ratios of neighbours, computed by scipy. No code of Weighbridge runs a program,
reads its output or computes a figure of this side. The other side is `weighbridge run` and `report --json`.

Both sides use the same files: one root filesystem that mmdebstrap builds at the start.

Results are kept in `RESULTS`, one entry per cost, and the page `PAGE` is written from them. ``--only`` measures some
costs again and keeps the others. ``--page`` only writes the page. The script needs root, dockerd, mmdebstrap and the
Debian repositories. gVisor's case needs runsc, the pod's case needs `make kubernetes`. Without them these cases are
skipped, and the page gives the reason. The whole session takes about 40 minutes.
"""

import argparse
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scipy import stats

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results/cross_check.json"
PAGE = ROOT / "docs/methods/cross-check.md"
BUILD = (
    "mmdebstrap -q --variant=apt --components='main contrib non-free' "
    "--include=iperf3,netperf,sysbench,fio,redis-server,redis-tools,hyperfine,netbase bookworm"
)
WEIGHBRIDGE = (sys.executable, "-m", "weighbridge")
PASSES = ("hand", "weighbridge", "hand", "weighbridge")
PATIENCE_S = 900.0
POWER = 0.8
"""How often a disagreement of the stated size would have been detected."""

# -- how an engineer reads what a tool prints ----------------------------------------------------------

HYPERFINE = "hyperfine -N -r 2 --style none --output null --export-json /dev/stdout"
READERS: Mapping[str, tuple[str, Callable[[str], float]]] = {
    "hyperfine": ("hyperfine's mean", lambda text: float(json.loads(text)["results"][0]["mean"])),
    "iperf3": (
        "`end.sum_received.bits_per_second`",
        lambda text: float(json.loads(text)["end"]["sum_received"]["bits_per_second"]),
    ),
    "netperf": ("`THROUGHPUT`", lambda text: float(re.findall(r"^THROUGHPUT=(\S+)", text, re.MULTILINE)[0])),
    "redis": ("requests per second", lambda text: float(re.findall(r'^"SET","([0-9.]+)"', text, re.MULTILINE)[0])),
    "sysbench": ("`events per second`", lambda text: float(re.findall(r"events per second: *(\S+)", text)[0])),
    "fio": (
        "`jobs[0].read.iops`",
        lambda text: float(json.loads(text[text.index("{") :])["jobs"][0]["read"]["iops"]),
    ),
}
"""For each name: the number in words, and a function that reads it from the output of the tool."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One cost: the shell lines of the measurement by hand, and the study of Weighbridge."""

    name: str
    title: str
    compared: str
    baseline: str
    """The line of the baseline, measured by hand."""
    isolated: str
    reads: str
    """One of `READERS`."""
    better: str
    study: str
    """Environments and workload of the study: the rest is `STUDY`."""
    environment: str
    setup: Sequence[str] = ()
    servers: Sequence[str] = ()
    """Lines of programs that run until the end of the pass."""
    teardown: Sequence[str] = ()
    check: Sequence[str] = ()
    """Two lines that measure the cause of a disagreement: in the baseline, and isolated."""
    checked: str = ""
    """The check in words."""
    why: str = ""
    """The explanation that the check supports."""
    remark: str = ""
    """A sentence about the history of the row, for the page."""
    needs: str = ""
    """"runsc" or "cluster"."""


STUDY = """study: cross-check-{name}
question: {question}
userland: {{kind: directory, path: {tree}}}
{study}
repetitions: {{blocks: {rounds}}}
"""
NATIVE_AND_DOCKER = """baseline: native
environments:
  native: {kind: native}
  docker: {kind: docker, network: none}
"""
KEEP = "docker run -d --name cross {options} cross-check sleep infinity"
GONE = ("docker rm -f cross",)
DD = "dd if=/dev/zero of=/dev/null bs=1 count=500000 status=none"
FIND = "find /usr -size +1000k"
PRIMES = "sysbench cpu --time=0 --events=2500 run"
REDIS = "redis-server --port {port} --protected-mode no --save '' --appendonly no"
REDIS_LOAD = "redis-benchmark -h {address} -p {port} -t set -n 20000 -c 20 --csv"
NETWORK = "docker network create --subnet 10.213.7.0/24 cross"
IN_NETWORK = KEEP.format(options="--network cross --ip 10.213.7.2")
NO_NETWORK = (*GONE, "docker network rm cross")
CACHED_READS = (
    "fio --name=data --directory={folder} --size=64m --rw=randread --bs=4k --ioengine=psync --invalidate=0 "
    "--randrepeat=1 --randseed=1 --time_based --runtime=1 --output-format=json"
)
READS = CACHED_READS.replace(" --invalidate=0", "")
FIO_ON_A_VOLUME = """baseline: native
environments:
  native: {kind: native, storage: directory}
  volume: {kind: docker, network: none, storage: volume}
workloads:
  reads: {kind: fio, mode: randread, file_size: 64MiB, block_size: 4KiB, duration: 1s, cold: false}"""
NEW_FILES = (
    "rm -rf {folder}/new && mkdir -p {folder}/new && "
    "{enter} fio --name=new --directory=/srv/new --ioengine=filecreate --openfiles=1 --nrfiles=2000 --filesize=4k "
    "--fallocate=none --output-format=json"
)


def _on_a_volume(line: str) -> dict[str, Any]:
    """Return the lines by hand that read a file with fio: natively, and in a container on a Docker volume."""
    native, isolated = f"chroot $ROOT {line}", f"docker exec cross {line}"
    keep = KEEP.format(options="--network none -v cross:/srv")
    return {
        "setup": (f"mkdir -p $ROOT/srv && {native} > /dev/null", keep, f"{isolated} > /dev/null"),
        "baseline": native, "isolated": isolated, "reads": "fio", "better": "higher",
        "teardown": (*GONE, "docker volume rm cross", "rm -f $ROOT/srv/data.*"),
    }  # fmt: skip


CASES = (
    Case(
        name="computing-docker",
        title="A program that only computes, in Docker (a cost of zero)",
        compared="run time of sysbench cpu, 2,500 events",
        setup=(KEEP.format(options="--network none"),),
        baseline=f"chroot $ROOT {HYPERFINE} '{PRIMES}'",
        isolated=f"docker exec cross {HYPERFINE} '{PRIMES}'",
        teardown=GONE, reads="hyperfine", better="lower",
        study=f"{NATIVE_AND_DOCKER}workloads:\n  primes: {{kind: command, run: {PRIMES}}}",
        environment="docker",
    ),
    Case(
        name="computing-netns",
        title="A program that only computes, in a network namespace (a cost of zero)",
        compared="events per second of sysbench cpu",
        setup=("ip netns add cross",),
        baseline="chroot $ROOT sysbench cpu --time=1 run",
        isolated="ip netns exec cross chroot $ROOT sysbench cpu --time=1 run",
        teardown=("ip netns delete cross",), reads="sysbench", better="higher",
        study="""baseline: native
environments:
  native: {kind: native}
  netns: {kind: netns}
workloads:
  primes: {kind: sysbench-cpu, duration: 1s}""",
        environment="netns",
    ),
    Case(
        name="system-calls",
        title="A program of system calls, in Docker (seccomp filter)",
        compared="run time of dd, a million system calls",
        setup=(KEEP.format(options="--network none"),),
        baseline=f"chroot $ROOT {HYPERFINE} '{DD}'",
        isolated=f"docker exec cross {HYPERFINE} '{DD}'",
        teardown=GONE, reads="hyperfine", better="lower",
        study=f"{NATIVE_AND_DOCKER}workloads:\n  dd: {{kind: command, run: {DD}}}",
        environment="docker",
    ),
    Case(
        name="exec-from-outside",
        title="The same program, timed from outside of the container",
        compared="run time of dd, a million system calls; by hand with `docker exec` in the measured time",
        setup=(KEEP.format(options="--network none"),),
        baseline=f'{HYPERFINE} "chroot $ROOT {DD}"',
        isolated=f"{HYPERFINE} 'docker exec cross {DD}'",
        teardown=GONE, reads="hyperfine", better="lower",
        study=f"{NATIVE_AND_DOCKER}workloads:\n  dd: {{kind: command, run: {DD}}}",
        environment="docker",
        check=(f'{HYPERFINE} "chroot $ROOT true"', f"{HYPERFINE} 'docker exec cross true'"),
        checked="the same two lines with `true` instead of `dd`",
        why="The time by hand includes the start of `docker exec`. Weighbridge's clock runs inside the container.",
    ),
    Case(
        name="bridge-stream",
        title="A TCP stream to a container on a bridge",
        compared="throughput of iperf3; the server is in the container",
        setup=(NETWORK, IN_NETWORK.replace("sleep infinity", "iperf3 -s"), "sleep 1"),
        servers=("chroot $ROOT iperf3 -s -p 5301",),
        baseline="chroot $ROOT iperf3 -J -c 127.0.0.1 -p 5301 -t 1",
        isolated="chroot $ROOT iperf3 -J -c 10.213.7.2 -t 1",
        teardown=NO_NETWORK, reads="iperf3", better="higher",
        study="""inside: [server]
baseline: native
environments:
  native: {kind: native}
  docker: {kind: docker, network: bridge}
workloads:
  stream: {kind: iperf3, duration: 1s}""",
        environment="docker",
    ),
    Case(
        name="bridge-requests",
        title="Requests and responses with a container on a bridge",
        compared="transactions per second of netperf TCP_RR; the server is in the container; both share one CPU",
        setup=(NETWORK, IN_NETWORK.replace("--name cross", "--name cross --cpuset-cpus 0").replace(
            "sleep infinity", "netserver -D"), "sleep 1"),
        servers=("taskset -c 0 chroot $ROOT netserver -D -N -4 -p 12301",),
        baseline="taskset -c 0 chroot $ROOT netperf -4 -H 127.0.0.1 -p 12301 -t TCP_RR -l 1 -- -k THROUGHPUT",
        isolated="taskset -c 0 chroot $ROOT netperf -4 -H 10.213.7.2 -t TCP_RR -l 1 -- -k THROUGHPUT",
        teardown=NO_NETWORK, reads="netperf", better="higher",
        study="""inside: [server]
resources: {pin: {server: "0", client: "0"}}
baseline: native
environments:
  native: {kind: native}
  docker: {kind: docker, network: bridge}
workloads:
  requests: {kind: netperf, test: TCP_RR, duration: 1s, warm_up: 0s}""",
        environment="docker",
        why="Weighbridge runs native programs in control groups of their own, as Docker does with containers. By "
        "hand, the native server is in the control group of the session. Check: the same lines by hand, 28 pairs, "
        "with the native server in a control group of its own too. The cost by hand was then 13.1% [10.4, 15.7]. It "
        "agrees with Weighbridge. In the same check, the lines of this page gave 15.5% [12.5, 18.4], and the "
        "control group alone cost 2.7% [0.3, 5.2].",
        remark="Two earlier versions of this row agreed, but could only have shown a disagreement of 40% or "
        "more. The first had no fixed CPUs, the second had one CPU for each side, which gave "
        "2,000 to 5,000 transactions per second natively. With one CPU for both it was about 40,000.",
    ),
    Case(
        name="netns-stream",
        title="A TCP stream to a network namespace",
        compared="throughput of iperf3; the server is in the namespace, behind a veth pair",
        setup=("ip netns add cross", "ip link add cross-a type veth peer name cross-b netns cross",
               "ip addr add 10.213.8.1/24 dev cross-a && ip link set cross-a up",
               "ip -n cross addr add 10.213.8.2/24 dev cross-b && ip -n cross link set cross-b up"),
        servers=("chroot $ROOT iperf3 -s -p 5301", "ip netns exec cross chroot $ROOT iperf3 -s"),
        baseline="chroot $ROOT iperf3 -J -c 127.0.0.1 -p 5301 -t 1",
        isolated="chroot $ROOT iperf3 -J -c 10.213.8.2 -t 1",
        teardown=("ip link delete cross-a", "ip netns delete cross"), reads="iperf3", better="higher",
        study="""inside: [server]
baseline: native
environments:
  native: {kind: native}
  netns: {kind: netns}
workloads:
  stream: {kind: iperf3, duration: 1s}""",
        environment="netns",
    ),
    Case(
        name="published-port",
        title="Redis behind a published port",
        compared="SET per second, 20 clients, at `127.0.0.1:PORT` (docker-proxy)",
        setup=(KEEP.format(options="-p 127.0.0.1:6392:6379").replace("sleep infinity", REDIS.format(port=6379)),
               "sleep 1"),
        servers=(f"chroot $ROOT {REDIS.format(port=6391)}",),
        baseline=f"chroot $ROOT {REDIS_LOAD.format(address='127.0.0.1', port=6391)}",
        isolated=f"chroot $ROOT {REDIS_LOAD.format(address='127.0.0.1', port=6392)}",
        teardown=GONE, reads="redis", better="higher",
        study="""inside: [server]
baseline: native
environments:
  native: {kind: native}
  published: {kind: docker, network: bridge, publish: true, publish_on: loopback}
workloads:
  redis: {kind: redis-benchmark, tests: set, requests: 20000, clients: 20}""",
        environment="published",
    ),
    Case(
        name="redis-bridge",
        title="Redis in a container on a bridge, at the container's address",
        compared="SET per second, 20 clients",
        setup=(NETWORK, IN_NETWORK.replace("sleep infinity", REDIS.format(port=6379)), "sleep 1"),
        servers=(f"chroot $ROOT {REDIS.format(port=6391)}",),
        baseline=f"chroot $ROOT {REDIS_LOAD.format(address='127.0.0.1', port=6391)}",
        isolated=f"chroot $ROOT {REDIS_LOAD.format(address='10.213.7.2', port=6379)}",
        teardown=NO_NETWORK, reads="redis", better="higher",
        study=f"""inside: [server]
baseline: native
environments:
  native: {{kind: native}}
  docker: {{kind: docker, network: bridge}}
workloads:
  redis:
    kind: command
    server: "redis-server --bind {{listen}} --port {{port}} --protected-mode no --save '' --appendonly no"
    client: "{REDIS_LOAD}"
    metrics:
      rate: {{regex: '^"SET","([0-9.]+)"', unit: 1/s, better: higher}}""",
        environment="docker",
    ),
    Case(
        name="volume",
        title="Reads of a file on a Docker volume",
        compared="cached random reads per second of fio, 4 KiB",
        **_on_a_volume(CACHED_READS.format(folder="/srv")),
        study=FIO_ON_A_VOLUME,
        environment="volume",
        why="The two sides ran fio with different options. fio drops its file from the page cache when it starts, "
        "unless the line has `--invalidate=0`. The line by hand has this option. Weighbridge's workload `fio` did "
        "not pass it, even with `cold: false`; this row made us add it. "
        "Check: natively, the line by hand made about 480,000 reads a second. "
        "Without the option it made about 14,000, and Weighbridge's workload about 10,000. The next two rows measure "
        "each kind of read with the same option on both sides.",
    ),
    Case(
        name="volume-same-line",
        title="Reads of a file on a Docker volume, by the same fio command line",
        compared="cached random reads per second of fio, 4 KiB",
        **_on_a_volume(CACHED_READS.format(folder="/srv")),
        study=f"""baseline: native
environments:
  native: {{kind: native, storage: directory}}
  volume: {{kind: docker, network: none, storage: volume}}
workloads:
  reads:
    kind: command
    setup: {CACHED_READS.format(folder="/srv")}
    run: {CACHED_READS.format(folder="/srv")}
    metrics:
      reads: {{json: "$.jobs[0].read.iops", unit: 1/s, better: higher}}""",
        environment="volume",
    ),
    Case(
        name="volume-uncached",
        title="Reads of a file on a Docker volume, after fio has dropped the file from the cache",
        compared="random reads per second of fio, 4 KiB, without `--invalidate=0`",
        **_on_a_volume(READS.format(folder="/srv")),
        study=FIO_ON_A_VOLUME,
        environment="volume",
        remark="Weighbridge ran the same study as in the row 'Reads of a file on a Docker volume', and the two "
        "results differ by more than their intervals allow. We did not find the cause. Each run makes its own "
        "files on the disk, which other programs use too.",
    ),
    Case(
        name="writable-layer",
        title="New files in a container's writable layer",
        compared="files created per second, by fio's filecreate",
        setup=(KEEP.format(options="--network none"),),
        baseline=NEW_FILES.format(folder="$ROOT/srv", enter="chroot $ROOT"),
        isolated="docker exec cross sh -c '" + NEW_FILES.format(folder="/srv", enter="") + "'",
        teardown=(*GONE, "rm -rf $ROOT/srv/new"), reads="fio", better="higher",
        study="""baseline: native
environments:
  native: {kind: native, storage: directory}
  layer: {kind: docker, network: none, storage: layer}
workloads:
  files:
    kind: command
    prepare: "sh -c 'rm -rf /srv/new && mkdir -p /srv/new'"
    run: >-
      fio --name=new --directory=/srv/new --ioengine=filecreate --openfiles=1 --nrfiles=2000 --filesize=4k
      --fallocate=none --output-format=json
    metrics:
      created: {json: "$.jobs[0].read.iops", unit: 1/s, better: higher}""",
        environment="layer",
    ),
    Case(
        name="image-files",
        title="A look at every file of the image (overlay file system)",
        compared="run time of find, which reads the size of every file below /usr",
        setup=(KEEP.format(options="--network none"),),
        baseline=f"chroot $ROOT {HYPERFINE.replace('-r 2', '-r 5')} '{FIND}'",
        isolated=f"docker exec cross {HYPERFINE.replace('-r 2', '-r 5')} '{FIND}'",
        teardown=GONE, reads="hyperfine", better="lower",
        study=f"{NATIVE_AND_DOCKER}workloads:\n  find: {{kind: command, run: {FIND}}}",
        environment="docker",
    ),
    Case(
        name="memory-limit",
        title="A memory limit: a file that is larger than it",
        compared="run time of dd, reading 96 MiB from a volume; a container with 64 MiB against one without a limit",
        setup=("docker run -d --name cross --network none -v cross:/srv cross-check sleep infinity",
               "docker run -d --name cross-small --memory 64m --network none -v cross-small:/srv cross-check "
               "sleep infinity",
               "docker exec cross dd if=/dev/zero of=/srv/file bs=1M count=96 status=none",
               "docker exec cross-small dd if=/dev/zero of=/srv/file bs=1M count=96 status=none", "sync"),
        baseline=f"docker exec cross {HYPERFINE} 'dd if=/srv/file of=/dev/null bs=1M status=none'",
        isolated=f"docker exec cross-small {HYPERFINE} 'dd if=/srv/file of=/dev/null bs=1M status=none'",
        teardown=("docker rm -f cross cross-small", "docker volume rm cross cross-small"),
        reads="hyperfine", better="lower",
        study="""baseline: free
environments:
  free: {kind: docker, network: none, storage: volume}
  limited: {kind: docker, network: none, storage: volume, resources: {memory: 64MiB}}
workloads:
  file:
    kind: command
    setup: dd if=/dev/zero of=/srv/file bs=1M count=96 conv=fsync status=none
    run: dd if=/srv/file of=/dev/null bs=1M status=none""",
        environment="limited",
    ),
    Case(
        name="cpu-limit",
        title="A CPU limit of half a CPU",
        compared="events per second of sysbench cpu; a container with `--cpus 0.5` against one without a limit",
        setup=(KEEP.format(options="--network none"),
               "docker run -d --name cross-half --cpus 0.5 --network none cross-check sleep infinity"),
        baseline="docker exec cross sysbench cpu --time=1 run",
        isolated="docker exec cross-half sysbench cpu --time=1 run",
        teardown=("docker rm -f cross cross-half",), reads="sysbench", better="higher",
        study="""baseline: free
environments:
  free: {kind: docker, network: none}
  half: {kind: docker, network: none, resources: {cpus: 0.5}}
workloads:
  primes: {kind: sysbench-cpu, duration: 1s}""",
        environment="half",
    ),
    Case(
        name="gvisor",
        title="A kernel in user space (gVisor)",
        compared="run time of dd, 100,000 system calls",
        setup=(KEEP.format(options="--runtime runsc --network none"),),
        baseline=f"chroot $ROOT {HYPERFINE} '{DD.replace('500000', '50000')}'",
        isolated=f"docker exec cross {HYPERFINE} '{DD.replace('500000', '50000')}'",
        teardown=GONE, reads="hyperfine", better="lower",
        study=f"""baseline: native
environments:
  native: {{kind: native}}
  gvisor: {{kind: docker, network: none, runtime: runsc}}
workloads:
  dd: {{kind: command, run: {DD.replace("500000", "50000")}}}""",
        environment="gvisor", needs="runsc",
    ),
    Case(
        name="pod",
        title="A pod's own network (Kubernetes)",
        compared="transactions per second of netperf TCP_RR between two nodes; the cluster's network against the "
        "nodes' own network",
        setup=("kubectl apply -f $FILES/pods.yaml",
               "kubectl wait --for=condition=Ready --timeout=120s -f $FILES/pods.yaml"),
        baseline="kubectl exec host-client -- netperf -4 -H $(kubectl get pod host-server -o "
        "'jsonpath={.status.podIP}') -p 12301 -t TCP_RR -l 1 -- -k THROUGHPUT",
        isolated="kubectl exec client -- netperf -4 -H $(kubectl get pod server -o 'jsonpath={.status.podIP}') "
        "-p 12301 -t TCP_RR -l 1 -- -k THROUGHPUT",
        teardown=("kubectl delete -f $FILES/pods.yaml --wait=true",), reads="netperf", better="higher",
        study="""hosts:
  a: {hosts[0]}
  b: {hosts[1]}
placement: {{client: a, server: b}}
inside: [server, client]
baseline: host
environments:
  host: {{kind: pod, network: host}}
  pod: {{kind: pod}}
workloads:
  requests: {{kind: netperf, test: TCP_RR, duration: 1s, warm_up: 0s}}""",
        environment="pod", needs="cluster",
    ),
)  # fmt: skip


# -- by hand -------------------------------------------------------------------------------------------


def sh(line: str, variables: Mapping[str, str], *, check: bool = True) -> str:
    """Run a line of shell and return what it prints."""
    done = subprocess.run(
        ["sh", "-c", line], env=variables, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    if check and done.returncode:
        raise RuntimeError(f"{line}: {done.stderr.strip()[-400:] or done.stdout.strip()[-400:]}")
    return done.stdout


@contextmanager
def running(line: str, variables: Mapping[str, str]) -> Iterator[None]:
    """Run a server until the end of the block, and end all of its processes."""
    with subprocess.Popen(
        ["sh", "-c", f"exec {line}"], env=variables, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as server:  # fmt: skip
        try:
            time.sleep(0.5)
            yield
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(10)


def by_hand(case: Case, rounds: int, variables: Mapping[str, str]) -> tuple[list[list[float]], list[float]]:
    """Return the pairs (baseline, isolated) of one pass, and what its check measures for each line."""
    _, read = READERS[case.reads]
    with ExitStack() as stack:
        for line in reversed(case.teardown):
            stack.callback(sh, line, variables, check=False)
        for line in case.setup:
            sh(line, variables)
        for line in case.servers:
            stack.enter_context(running(line, variables))
        pairs = [[read(sh(line, variables)) for line in (case.baseline, case.isolated)] for _ in range(rounds)]
        return pairs, [read(sh(line, variables)) for line in case.check]


def hand_logs(passes: Sequence[Sequence[Sequence[float]]]) -> tuple[float, float, float]:
    """Return the mean log ratio of all pairs, and the limits of its 95% interval by Student's t."""
    logs = [math.log(isolated / baseline) for pairs in passes for baseline, isolated in pairs]
    interval = stats.ttest_1samp(logs, 0.0).confidence_interval(0.95)
    return sum(logs) / len(logs), float(interval.low), float(interval.high)


# -- with Weighbridge ----------------------------------------------------------------------------------


def with_weighbridge(case: Case, study: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Run a study, and return what its report says of the cost."""
    with tempfile.TemporaryDirectory(prefix="cross-check-") as folder:
        file, run = Path(folder) / "study.yaml", Path(folder) / "run"
        file.write_text(study)
        command = [*WEIGHBRIDGE, "run", str(file), "--out", str(run), "--yes", "--beside-others"]
        for argv in (command, [*WEIGHBRIDGE, "report", str(run), "--json"]):
            done = subprocess.run(
                argv, env=variables, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=folder
            )
            if done.returncode:
                raise RuntimeError(f"{' '.join(argv[2:])}: {done.stderr.strip()[-600:]}")
        report = json.loads(done.stdout)
    [row] = [
        row for row in report["costs"]
        if row["environment"] == case.environment and row["primary"] and not row["control"]
    ]  # fmt: skip
    if row["better"] != case.better or row["low"] is None:
        raise RuntimeError(f"{row['metric']} has no ratio, or another direction than the figure by hand")
    keys = ("metric", "unit", "baseline_value", "value", "typical", "low", "high", "verdict")
    judged = {"blocks": row["rounds"], "trusted": report["control_passed"]}
    return {**{key: row[key] for key in keys}, **judged}


def pooled_logs(runs: Sequence[Mapping[str, Any]]) -> tuple[float, float, float]:
    """Return the mean log ratio of independent runs, and its limits: half-widths add as the squares do."""
    logs = [[math.log(run[key]) for key in ("typical", "low", "high")] for run in runs]
    below = math.sqrt(sum((typical - low) ** 2 for typical, low, _ in logs)) / len(logs)
    above = math.sqrt(sum((high - typical) ** 2 for typical, _, high in logs)) / len(logs)
    mean = sum(typical for typical, _, _ in logs) / len(logs)
    return mean, mean - below, mean + above


# -- the comparison ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """A cost by both methods, as log ratios (estimate, low, high), and the difference."""

    weighbridge: tuple[float, float, float]
    hand: tuple[float, float, float]

    @property
    def difference(self) -> tuple[float, float, float]:
        """Weighbridge less the hand's: limits add as squares do."""
        (ours, low, high), (theirs, their_low, their_high) = self.weighbridge, self.hand
        below = math.hypot(ours - low, their_high - theirs)
        above = math.hypot(high - ours, theirs - their_low)
        return ours - theirs, ours - theirs - below, ours - theirs + above

    @property
    def agree(self) -> bool:
        """Whether the interval of the difference contains 0."""
        _, low, high = self.difference
        return low <= 0 <= high

    @property
    def detectable(self) -> float:
        """The relative difference between the two ratios that would be found in `POWER` of sessions."""
        _, low, high = self.difference
        usual = float(stats.norm.ppf(0.975))
        return math.expm1((high - low) / 2 * (usual + float(stats.norm.ppf(POWER))) / usual)


def compared(entry: Mapping[str, Any]) -> Compared:
    """Compare the two methods of an entry of the results."""
    return Compared(pooled_logs(entry["weighbridge"]), hand_logs(entry["hand"]))


def cost(logs: tuple[float, float, float], better: str) -> tuple[float, float, float]:
    """Return a cost and its limits in percent, positive if worse."""
    middle, low, high = (100 * math.expm1(value) for value in logs)
    return (middle, low, high) if better == "lower" else (-middle, -high, -low)


# -- the session ---------------------------------------------------------------------------------------


def say(text: str) -> None:
    """Print progress."""
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", flush=True)


@contextmanager
def root_filesystem(folder: Path, given: Path | None) -> Iterator[tuple[Path, Path, Path]]:
    """Make the files that both sides use: their archive, a tree to enter by chroot, and one without mounts."""
    archive, variables = given or folder / "root.tar", dict(os.environ)
    if given is None:
        say("building the root filesystem with mmdebstrap")
        sh(f"{BUILD} {archive}", variables)
    tree, entered = folder / "tree", folder / "root"
    for each in (tree, entered):
        each.mkdir()
        sh(f"tar -xf {archive} -C {each}", variables)
    with ExitStack() as stack:
        for name, mount in (("proc", "-t proc proc"), ("sys", "--rbind /sys"), ("dev", "--rbind /dev")):
            sh(f"mount {mount} {entered / name} && mount --make-rslave {entered / name}", variables)
            stack.callback(sh, f"umount -R -l {entered / name}", variables)
        yield archive, entered, tree


@contextmanager
def engine(archive: Path, folder: Path, variables: dict[str, str]) -> Iterator[None]:
    """Use the engine that answers, or start one of our own; the image of the root filesystem is in it."""
    own = not sh("docker info --format '{{.ServerVersion}}'", variables, check=False).strip()
    with ExitStack() as stack:
        if own:
            data = folder / "engine"
            data.mkdir()
            runsc = shutil.which("runsc")
            argv = [
                "dockerd", "--data-root", data / "data", "--exec-root", data / "exec", "--pidfile", data / "pid",
                "--host", f"unix://{data}/socket", *(["--add-runtime", f"runsc={runsc}"] if runsc else []),
            ]  # fmt: skip
            log = stack.enter_context((folder / "dockerd.log").open("wb"))
            daemon = subprocess.Popen([str(each) for each in argv], stdout=log, stderr=log, start_new_session=True)
            stack.callback(sh, f"umount -R -l {data / 'data'} {data / 'exec'}", variables, check=False)
            stack.callback(_end, daemon)
            variables["DOCKER_HOST"] = f"unix://{data}/socket"
            deadline = time.monotonic() + 60
            while not sh("docker info --format '{{.ServerVersion}}'", variables, check=False).strip():
                if time.monotonic() > deadline or daemon.poll() is not None:
                    raise RuntimeError(f"dockerd does not answer: {(folder / 'dockerd.log').read_text()[-500:]}")
                time.sleep(0.3)
        sh(f"docker import {archive} cross-check", variables)
        stack.callback(sh, "docker image rm cross-check", variables, check=False)
        yield


def _end(daemon: "subprocess.Popen[bytes]") -> None:
    daemon.terminate()
    daemon.wait(60)


PODS = "\n---\n".join(
    f"""apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeSelector: {{kubernetes.io/hostname: {node}}}
  hostNetwork: {"true" if name.startswith("host") else "false"}
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: docker.io/library/cross-check:latest
    imagePullPolicy: Never
    command: [{program}]"""
    for name, node, program in (
        ("client", "node-a", "sleep, infinity"), ("host-client", "node-a", "sleep, infinity"),
        ("server", "node-b", "netserver, -D, -N, '-4', -p, '12301'"),
        ("host-server", "node-b", "netserver, -D, -N, '-4', -p, '12301'"),
    )
)  # fmt: skip


@contextmanager
def cluster(folder: Path, variables: dict[str, str]) -> Iterator[list[str]]:
    """Start the cluster of the tests with our image; return the hosts of a study, one for each node."""
    sys.path.insert(0, str(ROOT))
    from tests.real import cluster as clusters
    from tests.real.kubernetes import host_options

    (folder / "pods.yaml").write_text(PODS)
    with tempfile.TemporaryDirectory(prefix="cross-check-cluster-") as place, clusters.two_nodes(Path(place)) as made:
        variables |= {**made.variables(), "FILES": str(folder)}
        variables["PATH"] = f"{made.programs['kubectl'].parent}:{variables['PATH']}"
        sh(f"docker save cross-check -o {folder / 'image.tar'}", variables)
        made.load(folder / "image.tar")
        yield [json.dumps(host_options(made, node)) for node in (0, 1)]


def lacking(case: Case) -> str:
    """Return why a case cannot be measured here; "" if it can."""
    if case.needs == "runsc":
        return "" if shutil.which("runsc") else "runsc is not installed (`make gvisor`)"
    if case.needs == "cluster":
        sys.path.insert(0, str(ROOT))
        from tests.real import cluster as clusters

        return str(clusters.missing())
    return ""


def measured(case: Case, rounds: int, tree: Path, folder: Path, variables: dict[str, str]) -> dict[str, Any]:
    """Measure one cost in all passes."""
    entry: dict[str, Any] = {"hand": [], "weighbridge": [], "check": []}
    entry["date"] = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    entry["commit"] = sh(f"git -C {ROOT} rev-parse --short HEAD", variables, check=False).strip()
    with ExitStack() as stack:
        study = case.study
        if case.needs == "cluster":
            study = study.format(hosts=stack.enter_context(cluster(folder, variables)))
        text = STUDY.format(name=case.name, question=f"{case.title}?".replace(":", ","), tree=tree, study=study,
                            rounds=rounds)  # fmt: skip
        entry["load"] = [round(os.getloadavg()[0], 1)]
        for name in PASSES:
            begun = time.monotonic()
            if name == "hand":
                pairs, checked = by_hand(case, rounds, variables)
                entry["hand"].append([[float(f"{value:.5g}") for value in pair] for pair in pairs])
                entry["check"] += [[float(f"{value:.5g}") for value in checked]] if checked else []
                said = f"{100 * math.expm1(hand_logs([pairs])[0]):+.1f}%"
            else:
                run = with_weighbridge(case, text, variables)
                entry["weighbridge"].append(
                    {key: float(f"{value:.6g}") if isinstance(value, float) else value for key, value in run.items()}
                )
                said = f"{100 * (run['typical'] - 1):+.1f}%"
            say(f"  {case.name}: {name}, {said} in {time.monotonic() - begun:.0f} s")
        entry["load"].append(round(os.getloadavg()[0], 1))
    return entry


def machine(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the machine in general words."""
    virtual = sh("grep -q '^flags.* hypervisor' /proc/cpuinfo && echo yes", variables, check=False).strip()
    versions = "docker version --format '{{.Server.Version}}'"
    return {
        "CPUs": f"{os.cpu_count()}{' (virtual machine)' if virtual else ''}",
        "kernel": os.uname().release.partition("-")[0],
        "Docker Engine": sh(versions, variables).strip(),
    }


# -- the page ------------------------------------------------------------------------------------------


def _percent(value: float) -> str:
    return f"{value:.1f}" if abs(value) < 100 else f"{value:,.0f}"


def _interval(logs: tuple[float, float, float], better: str) -> str:
    middle, low, high = cost(logs, better)
    return f"{_percent(middle)}% [{_percent(low)}, {_percent(high)}]"


INTRODUCTION = """# Cross-check against other tools

Is a cost that Weighbridge reports the cost that you would measure yourself?
`benchmarks/cross_check.py` measures each cost twice in one session. One side is
`weighbridge run` and `weighbridge report --json`. The other side uses only other
people's tools, with the command lines that this page lists.

Run it yourself, as root, on a machine with Docker and mmdebstrap:

    python benchmarks/cross_check.py
    python benchmarks/cross_check.py --only system-calls

## Method

- Each cost is measured in four passes: by hand, Weighbridge, by hand,
  Weighbridge. Slow drift of the machine therefore reaches both methods.
- A pass by hand alternates the two command lines. Each line starts a container
  or a server only once per pass.
- The estimate by hand is the geometric mean of the ratios of neighbouring runs.
  Its 95% interval is Student's t of the log ratios, computed by scipy.
- The estimate of Weighbridge is the geometric mean of its two runs. The
  half-widths of the two intervals are combined as independent errors.
- Both sides use the same root filesystem, which mmdebstrap builds. Natively the
  programs run in a chroot of it. In Docker they run in an image of it.
- **Agree** means that the 95% interval of the difference between the two methods
  contains zero. If both methods were right, about one row in twenty would still
  disagree by chance.
- **Would have shown** is the disagreement that this rule detects in four of five
  sessions. A row with a large value is weak evidence.

A positive cost means that the isolated program does worse.

## Results
"""


def page(results: Mapping[str, Any]) -> str:
    """Return the page of these results."""
    entries = {case: results["costs"].get(case.name) for case in CASES}
    rows = [(case, entry, compared(entry)) for case, entry in entries.items() if entry and "skipped" not in entry]
    agreed = sum(row.agree for _, _, row in rows)
    facts = "\n".join(f"| {name} | {value} |" for name, value in results["machine"].items())
    lines = [
        INTRODUCTION,
        f"{agreed} of {len(rows)} costs agree.\n",
        "| cost | Weighbridge [95%] | by hand [95%] | agree? | would have shown |",
        "|---|---|---|---|---|",
        *(
            f"| {case.title} | {_interval(row.weighbridge, case.better)} | "
            f"{_interval(row.hand, case.better)} | {'yes' if row.agree else '**no**'} | "
            f"{_percent(100 * row.detectable)}% |"
            for case, _, row in rows
        ),
        "",
        *(f"Not measured: {case.title}, because {entry['skipped']}.\n" for case, entry in entries.items()
          if entry and "skipped" in entry),
        "## Disagreements\n",
        *(_disagreement(case, entry, row) for case, entry, row in rows if not row.agree),
        *(["None.\n"] if agreed == len(rows) else []),
        "## The machine\n",
        "| | |\n|---|---|",
        facts,
        "",
        *([textwrap.fill(results["note"], 88), ""] if results.get("note") else []),
        "The load average of the machine at the start and at the end of each cost, with other work included:\n",
        "| cost | date (UTC) | commit | pairs by hand | rounds of Weighbridge | load at start, end |",
        "|---|---|---|---|---|---|",
        *(
            f"| {case.name} | {entry['date']} | {entry['commit']} | {sum(map(len, entry['hand']))} | "
            f"{sum(run['blocks'] for run in entry['weighbridge'])} | {entry['load'][0]}, {entry['load'][1]} |"
            for case, entry, _ in rows
        ),
        "",
        "## The command lines\n",
        "`$ROOT` is a folder with the root filesystem. `cross-check` is an image of it:\n",
        f"```sh\n{BUILD} root.tar",
        "tar -xf root.tar -C $ROOT\nmount -t proc proc $ROOT/proc\nmount --rbind /sys $ROOT/sys",
        "mount --rbind /dev $ROOT/dev\ndocker import root.tar cross-check\n```\n",
        *(_commands(case) for case in entries if entries[case]),
    ]  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


def _disagreement(case: Case, entry: Mapping[str, Any], row: Compared) -> str:
    difference = 100 * math.expm1(row.difference[0])
    direction = "higher" if difference > 0 else "lower"
    ratio = f"the ratio of isolated to native is {abs(difference):.1f}% {direction} than by hand"
    lines = [f"**{case.title}.** With Weighbridge, {ratio}."]
    if entry.get("check"):
        first, second = (stats.tmean([pair[side] for pair in entry["check"]]) for side in (0, 1))
        lines.append(f"Check: {case.checked}, took {1000 * first:.0f} ms and {1000 * second:.0f} ms.")
        corrected = [[[base - first, other - second] for base, other in pairs] for pairs in entry["hand"]]
        again = Compared(row.weighbridge, hand_logs(corrected))
        lines.append(
            f"Without these the cost by hand is {_interval(again.hand, case.better)}, which "
            f"{'agrees' if again.agree else 'still disagrees'}."
        )
    lines.append(case.why or "Not explained yet.")
    return textwrap.fill(" ".join(lines), 88, break_on_hyphens=False) + "\n"


def _commands(case: Case) -> str:
    words, _ = READERS[case.reads]
    server = [f"{line} &" for line in case.servers]
    study = case.study
    if case.needs == "cluster":
        hosts = [f"{{kind: kubernetes, node: NODE-{node}, images: {{load: containerd}}}}" for node in (1, 2)]
        study = case.study.format(hosts=hosts)
    return "\n".join([
        f"### {case.title}\n",
        f"Compared: {case.compared}. The figure by hand is {words}.\n",
        *([textwrap.fill(case.remark, 88) + "\n"] if case.remark else []),
        *(["`pods.yaml`:\n", f"```yaml\n{PODS}\n```\n"] if case.needs == "cluster" else []),
        "```sh", *case.setup, *server, "# in turn:", case.baseline, case.isolated, "# at the end:", *case.teardown,
        "```\n", "```yaml", study.strip(), "```\n",
    ])  # fmt: skip


def write_page(results: Mapping[str, Any]) -> None:
    """Write the page."""
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(results))


def main() -> int:
    """Measure, keep the results, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = [case.name for case in CASES]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help="of each pass (default: 10)")
    parser.add_argument("--root", type=Path, metavar="TAR", help="a root filesystem built before (default: build it)")
    parser.add_argument("--note", help="a sentence about the machine, for the page")
    parser.add_argument("--page", action="store_true", help="only write the page, from the results that are kept")
    given = parser.parse_args()
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"costs": {}}
    if given.page:
        write_page(results)
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="cross-check-") as place, ExitStack() as stack:
        folder = Path(place)
        folder.chmod(0o755)
        archive, root, tree = stack.enter_context(root_filesystem(folder, given.root))
        variables = {
            **os.environ, "ROOT": str(root), "FILES": str(folder), "WEIGHBRIDGE_CACHE": str(folder / "cache"),
            "PYTHONPATH": str(ROOT / "src"),
        }  # fmt: skip
        stack.enter_context(engine(archive, folder, variables))
        results["machine"] = machine(variables)
        results |= {"note": given.note} if given.note else {}
        for case in CASES:
            if given.only and case.name not in given.only:
                continue
            say(f"{case.name}: {case.title}")
            if why := lacking(case):
                results["costs"].setdefault(case.name, {"skipped": why})
                say(f"  skipped: {why}")
                continue
            try:
                results["costs"][case.name] = measured(case, given.rounds, tree, folder, dict(variables))
            except (RuntimeError, ValueError, LookupError, ArithmeticError, subprocess.TimeoutExpired) as error:
                failed += 1
                say(f"  failed: {error}")
                continue
            row = compared(results["costs"][case.name])
            say(f"  {'agree' if row.agree else 'DISAGREE'}: Weighbridge {_interval(row.weighbridge, case.better)}, "
                f"by hand {_interval(row.hand, case.better)}")  # fmt: skip
            RESULTS.parent.mkdir(parents=True, exist_ok=True)
            RESULTS.write_text(_compact(results))
    RESULTS.write_text(_compact(results))
    write_page(results)
    return int(failed > 0)


def _compact(results: Mapping[str, Any]) -> str:
    """Return JSON with one line for each cost."""
    costs = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in results["costs"].items())
    others = "".join(
        f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in results.items() if key != "costs"
    )
    return f'{{\n{others} "costs": {{\n{costs}\n }}\n}}\n'


if __name__ == "__main__":
    sys.exit(main())
