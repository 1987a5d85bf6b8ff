"""The tables, the paragraph and the entry for a paper, as LaTeX and BibTeX read them."""

import lzma
import shutil
import subprocess
from pathlib import Path

import pytest

from report.made_up_runs import Recipe, Workload, make_run
from report.test_html import HOSTILE
from weighbridge.analysis.analyse import analyse
from weighbridge.features.replication.claims import claims_latex
from weighbridge.features.replication.comparison import replication
from weighbridge.features.replication.published import published
from weighbridge.model.measurement import Metric
from weighbridge.report.bib import run_bib
from weighbridge.report.documents import run_latex, run_methods
from weighbridge.store.run import DATABASE, RunStore

KEPT = Path(__file__).parents[1] / "report/finished_runs/docker-networks.sqlite.xz"
NAMES = f"{HOSTILE} \\input{{/etc/passwd}} % # & _ ^^M ~ $x$ {{ -- \x1b[2J"
PAPER = r"""\documentclass{article}
\usepackage{booktabs,longtable,textcomp}
\begin{document}
%s
\cite{weighbridge-20240101abcd}
\bibliographystyle{plain}
\bibliography{runs}
\end{document}
"""
needs_latex = pytest.mark.skipif(
    not (shutil.which("pdflatex") and shutil.which("bibtex")), reason="needs pdflatex and bibtex"
)


@needs_latex
def test_latex_takes_what_a_run_prints_for_a_paper(tmp_path: Path):
    parts = []
    metric = Metric("throughput", "bit/s", "higher")
    workloads = [Workload(f"[1cm] {NAMES}", [(metric, 1e9, 0.01)])]
    recipe = Recipe(costs={f"*{NAMES}": 1.25}, study=NAMES, question=NAMES, workloads=workloads)
    with make_run(tmp_path / "stranger", recipe) as store:
        analysis = analyse(store)
        parts += [run_latex(analysis), run_methods(store, analysis, as_latex=True)]
        (tmp_path / "runs.bib").write_text(run_bib(store, analysis))
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / DATABASE).write_bytes(lzma.decompress(KEPT.read_bytes()))
    with RunStore(kept) as store:
        analysis = analyse(store)
        found = replication(analysis, published(analysis.study))
        parts += [run_latex(analysis), run_methods(store, analysis, as_latex=True), claims_latex(found)]
    (tmp_path / "paper.tex").write_text(PAPER % "\n\n".join(parts))
    argv = ("pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex")
    for command in (argv, ("bibtex", "paper"), argv):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout
    log = (tmp_path / "paper.log").read_text(errors="replace")
    assert "Undefined control sequence" not in log and "(/etc/passwd" not in log.replace("\n", "")
