"""What the charts are checked against: Vega-Lite's schema, as Altair ships it."""

import json
from typing import Any

import altair as alt

from weighbridge.report.charts import Chart


def definition_of(chart: Chart) -> dict[str, Any]:
    """Give a chart's definition, if Vega-Lite takes it and JSON can hold it."""
    definition = json.loads(json.dumps(chart.definition, allow_nan=False))
    (alt.VConcatChart if "vconcat" in definition else alt.LayerChart).validate(definition)
    return definition
