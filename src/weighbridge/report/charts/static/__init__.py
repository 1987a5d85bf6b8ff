"""Charts as SVG inside a page: what is seen without its script, in print, and before the script has drawn.

The page's definitions are drawn by own code: vl-convert starts a JavaScript engine, which takes half a second and
then 50 ms for each chart. Drawn are the marks and scales that our charts have, and no more (see `marks`, `scales`).
"""

from weighbridge.report.charts.static.drawing import static_svg

__all__ = ["static_svg"]
