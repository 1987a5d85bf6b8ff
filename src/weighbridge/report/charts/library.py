"""Vega, Vega-Lite and Vega-Embed as one script, from the copy inside vl-convert.

vl-convert takes a second to bundle them, so the script is kept in the user's cache under its version.
"""

from functools import cache
from importlib import metadata

from weighbridge.report.page_cache import read_cached, write_cached


@cache
def chart_library() -> str:
    """Return the script; it holds nothing that would end a script element."""
    name = f"charts/vega-{metadata.version('vl-convert-python')}.js"
    if script := read_cached(name).decode(errors="replace"):
        return script
    import vl_convert

    newest = vl_convert.get_vegalite_versions()[-1]
    script = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=newest))
    if "</script" in script.lower() or "<!--" in script:
        raise AssertionError("the chart library holds text that would end its script element")
    write_cached(name, script.encode())
    return script
