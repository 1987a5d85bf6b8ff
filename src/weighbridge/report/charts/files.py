"""Charts as files."""

from pathlib import Path
from typing import Any, Literal

from weighbridge.analysis.metric_names import metric_words
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.sweep import drawn_curves
from weighbridge.report.charts.costs import forest, overview
from weighbridge.report.charts.curves import load_curve
from weighbridge.report.charts.ladder import waterfall
from weighbridge.report.charts.latency import percentile_curve
from weighbridge.report.charts.trials import distribution, runs


def write_charts(analysis: Analysis, directory: Path, file_format: Literal["png", "svg"] = "svg") -> list[Path]:
    """Write every chart as a file into `directory` (made where missing) and give their paths; PNG at double size."""
    directory.mkdir(parents=True, exist_ok=True)
    charts: list[tuple[str, str, Any]] = [("overview", analysis.question, overview(analysis))]
    for number, report in enumerate(analysis.metrics, 1):
        about = f"{report.title} ({report.better} is better)"
        charts.append((f"{number:02d}-cost", f"{about}: cost against {analysis.baseline}", forest(analysis, report)))
        charts.append((f"{number:02d}-runs", about, runs(analysis, report)))
        charts.append((f"{number:02d}-distribution", about, distribution(analysis, report)))
    for number, ladder in enumerate(analysis.ladder, 1):
        about = f"{ladder.report.title}: what each step costs"
        charts.append((f"ladder-{number:02d}", about, waterfall(analysis, ladder)))
    for number, latency in enumerate(analysis.latencies, 1):
        about = f"{latency.label} {metric_words(latency.metric)}: all runs of each environment"
        charts.append((f"percentiles-{number:02d}", about, percentile_curve(analysis, latency)))
    for number, (sweep, curve) in enumerate(drawn_curves(analysis.sweeps), 1):
        about = f"{sweep.title}: {metric_words(curve.metric)} over the load ({curve.better} is better)"
        charts.append((f"curve-{number:02d}", about, load_curve(analysis, sweep, curve)))
    written = []
    for name, title, chart in charts:
        if chart is not None:
            path = directory / f"{name}.{file_format}"
            sized = (
                chart.properties(width=560, title=title)
                .configure_view(strokeOpacity=0.2)
                .configure_axisY(labelLimit=260)
                .configure_legend(columns=3)
            )
            sized.save(path, format=file_format, **({"scale_factor": 2} if file_format == "png" else {}))
            written.append(path)
    return written
