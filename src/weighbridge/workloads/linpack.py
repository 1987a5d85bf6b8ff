"""High-Performance Linpack: floating-point operations per second while it solves a dense system of equations."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed, Unparseable, require_success
from weighbridge.model.options import Options
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload

FLOPS = Metric("flops", "GFLOP/s", "higher")
_FOLDER = "/tmp"  # noqa: S108
_INPUT, _OUTPUT = "hpccinf.txt", "hpccoutf.txt"
_ENV = {
    "OMPI_MCA_ess_singleton_isolated": "1",  # one process, without a daemon: no network, no files of a session
    "OMPI_MCA_btl": "self",
}
_USUAL_FLOPS = 8e9
_OTHER_TESTS_S = 1.2e-6
"""The seconds of hpcc's other tests for each element of the matrix."""
_RUN = re.compile(
    r"^W[A-Z0-9]+ +([0-9]+) +([0-9]+) +1 +1 +[0-9]+\.[0-9]{2} +([0-9]\.[0-9]{3}e[+-][0-9]{2})\n", re.MULTILINE
)
_RESIDUAL = re.compile(r"^\|\|Ax-b\|\|_oo/.*= +([^ ]+) \.{6} (PASSED|FAILED)\n", re.MULTILINE)
_END = re.compile(r"\nSuccess=1\n(?:.*\n)*End of HPC Challenge tests\.\nCurrent time .*\n\n#{72}\n")
_ERROR = re.compile(r"^HPL ERROR .*\n>>> (?:\[[0-9, ]+\] )?(.{1,300}) <<<", re.MULTILINE)
_PARAMETERS = """\
HPLinpack benchmark input file
written by Weighbridge
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
{repeats}            # of problems sizes (N)
{sizes} Ns
1            # of NBs
{block}           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
1            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0                      		Number of additional problem sizes for PTRANS
1200 10000 30000        	values of N
0                       	number of additional blocking sizes for PTRANS
40 9 8 13 13 20 16 32 64       	values of NB
"""
"""The example of Debian's package, with one process and our sizes."""


class LinpackOptions(Options):
    """Options of Linpack."""

    size: Annotated[
        int, Field(ge=100, le=20_000, description="Number of equations: the matrix has size x size x 8 bytes")
    ] = 2000
    block: Annotated[int, Field(ge=8, le=1024, description="HPL's block size (NB)")] = 128
    repeats: Annotated[int, Field(ge=1, le=20, description="Solutions per trial")] = 5
    threads: Annotated[int, Field(ge=1, le=64, description="Threads of OpenBLAS, in one process")] = 1


class Linpack(Workload):
    """Runs HPL in one MPI process, on OpenBLAS. All solutions must pass its residual check.

    Debian has HPL only in hpcc, which first runs its other tests (STREAM, RandomAccess, FFT and more) on arrays as
    large as the matrix. HPL is about half of a trial with the defaults. The other tests are in the site's CPU time,
    but not in the figure. OpenBLAS chooses its kernels for the CPU, so a guest whose CPU has fewer instructions is
    slower. HPL is CPU-bound. A matrix that fits into a cache hides the cost of memory.
    """

    kind = "linpack"
    summary = "HPL (High-Performance Linpack): floating-point speed of one process"
    options = LinpackOptions
    packages = ("hpcc", "libopenblas0-pthread")

    def metrics(self, options: LinpackOptions) -> tuple[Metric, ...]:
        """Return ``flops``: 10^9 floating-point operations per second, over all solutions."""
        return (FLOPS,)

    def files(self, role: Role, options: LinpackOptions, at: Endpoint) -> Mapping[str, bytes]:
        sizes = " ".join([str(options.size)] * options.repeats)
        text = _PARAMETERS.format(repeats=options.repeats, sizes=sizes, block=options.block)
        return {f"{_FOLDER}/{_INPUT}": text.encode()}

    def warm_up(self, options: LinpackOptions, at: Endpoint) -> Command:
        """Link hpcc's report, which it writes to a file with a fixed name, to standard output. It runs no test."""
        report = f"{_FOLDER}/{_OUTPUT}"
        return Command(("ln", "--symbolic", "--force", "--no-dereference", "/proc/self/fd/1", report))

    def command(self, role: Role, options: LinpackOptions, at: Endpoint) -> Command:
        env = {**_ENV, "OPENBLAS_NUM_THREADS": str(options.threads)}
        deadline_s = 120 + 60 * options.threads * self.expected_s(options)  # an emulated CPU takes that much longer
        return Command(("env", f"--chdir={_FOLDER}", "hpcc"), deadline_s, env)

    def expected_s(self, options: LinpackOptions) -> float:
        """Add the times of HPL and of hpcc's other tests."""
        own = options.repeats * _operations(options.size) / _USUAL_FLOPS / min(options.threads, 2)
        return 0.5 + own + _OTHER_TESTS_S * options.size**2

    def parse(self, options: LinpackOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Divide all operations by all their time. Raises ProgramFailed (also for a residual) or Unparseable."""
        text = require_success(completed["solo"], "hpcc").text
        residuals = _RESIDUAL.findall(text)
        if wrong := [value for value, verdict in residuals if verdict != "PASSED"]:
            raise ProgramFailed(f"HPL's solution is wrong: its residual is {wrong[0]}, above the limit of 16")
        speeds = [float(speed) for size, block, speed in _RUN.findall(text) if _is(options, size, block)]
        if complaint := _ERROR.search(text):
            raise ProgramFailed(f"HPL: {complaint[1]}")
        if "\nSuccess=0\n" in text:
            raise ProgramFailed("hpcc reports a failed test")
        runs = {len(speeds), len(residuals)}
        if _END.search(text) is None or runs != {options.repeats} or 0.0 in speeds:
            raise Unparseable(f"hpcc's report is incomplete, or does not have {options.repeats} checked runs of HPL")
        seconds = sum(_operations(options.size) / (speed * 1e9) for speed in speeds)
        return TrialResult((Measurement(FLOPS, len(speeds) / sum(1 / speed for speed in speeds)),), work_s=seconds)


def _operations(size: int) -> float:
    """Count the operations as HPL does: 2/3 n^3 + 3/2 n^2."""
    return 2 / 3 * size**3 + 3 / 2 * size**2


def _is(options: LinpackOptions, size: str, block: str) -> bool:
    return (int(size), int(block)) == (options.size, options.block)


PLUGIN = Linpack()
