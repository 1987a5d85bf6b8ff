import base64
import gzip
import itertools
import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import jinja2
import pytest

from weighbridge.analysis.analyse import analyse
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Metric, Outcome
from weighbridge.report.charts.library import chart_library
from weighbridge.report.html import write_html
from weighbridge.report.page import templates
from weighbridge.report.page_cache import read_cached, write_cached
from weighbridge.report.sections.trials import ALL_EXCERPTS_BYTES
from weighbridge.store.run import RunStore

from .made_up_runs import LOSS, REQUESTS, TCP, Workload

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{7*7}}"


class Page(HTMLParser):
    """What is in a page: elements with their attributes, the text of each script, all other text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text = ""
        self._in = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._in = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag):
        self._in = ""

    def handle_data(self, data):
        if self._in == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif self._in != "style":
            self.text += data

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


def page_of(store, path=None) -> Page:
    path = path or store.directory / "report.html"
    assert write_html(store, path) == path
    return Page(path.read_text())


def check_links(page, directory):
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for attrs in page.all("a")]
    for link in links:
        assert link[1:] in ids if link.startswith("#") else (directory / unquote(link)).is_file(), link
    return links


def test_only_the_primary_metric_is_unfolded(run):
    odd = Workload("web", [(REQUESTS, 1000.0, 0.01), (Metric("p50_ms", "ms", "lower"), 1.0, 0.01)])
    same = {("bridge", (("n", "1"),)): 1 / 1.25}
    odd = Workload("web", odd.metrics, (("n", "1"),))
    store = run(costs={"bridge": 1.25}, bends=same, workloads=[TCP, odd, Workload("udp", [(LOSS, 1.0, 0.1)])], seed=2)
    page = page_of(store)
    check_links(page, store.directory)
    assert "more metrics: p99 latency (significant)" in page.text and "more metrics: p50 ms" in page.text
    assert not any("open" in attrs for attrs in page.all("details"))
    charts = " ".join(text for attrs, text in page.scripts if attrs.get("type") == "application/json")
    assert "p50 ms" in charts and "p50_ms" not in charts
    depth = [tag for tag, _ in re.findall(r"<(/?details|article)( class=\"(?:more|metric)\")?", _source(store))]
    assert depth.count("details") == depth.count("/details")


def _source(store) -> str:
    return (store.directory / "report.html").read_text()


def test_every_link_leads_somewhere(run):
    store = run(costs={"bridge": 1.25}, failing={(3, "bridge"): Outcome.DEADLINE}, outputs=True)
    links = check_links(page_of(store), store.directory)
    assert sum("raw/" in link for link in links) == 30 and "#t1" not in links and "#failed" in links
    assert any(re.fullmatch(r"#g0-1", link) for link in links)


def test_every_comparison_has_a_link_and_what_filters_and_order_go_by(run):
    store = run(costs={"bridge": 1.25, "host": 1.0})
    page = page_of(store)
    links = check_links(page, store.directory)
    rows = {attrs["id"]: attrs for attrs in page.all("tr") if "data-verdict" in attrs}
    compared = [(report, row) for report in analyse(store).metrics for row in report.comparisons]
    assert len(rows) == len(compared) == 6 and all(f"#{name}" in links for name in rows)
    for (_, row), attrs in zip(compared, rows.values(), strict=True):
        assert (attrs["data-environment"], attrs["data-verdict"]) == (row.environment, row.shown_as)
        assert float(attrs["data-cost"]) == pytest.approx(row.cost.penalty.estimate, rel=1e-3)
    boxes = {(attrs["name"], attrs["value"]) for attrs in page.all("input") if attrs["type"] == "checkbox"}
    verdicts = {("verdict", row.shown_as) for _, row in compared if not row.aa}
    environments = {("environment", row.environment) for _, row in compared}
    assert boxes == environments | verdicts | {("proven", "only")}  # there is but one workload
    assert "hidden" in page.all("form")[0]  # until the script works


def test_the_page_may_be_elsewhere(run, tmp_path):
    store = run(costs={"bridge": 1.25}, blocks=1, outputs=True)
    other = tmp_path / "a folder" / "page.html"
    other.parent.mkdir()
    links = check_links(page_of(store, other), other.parent)
    assert any(link.startswith("../run0/raw/") for link in links)


def test_nothing_is_fetched(run):
    page = page_of(run(costs={"bridge": 1.25}))
    assert not page.all("link") and not page.all("img") and not page.all("iframe")
    assert all("src" not in attrs for _, attrs in page.elements)
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy and "http" not in policy
    assert not any("http" in (attrs.get("href") or "") for _, attrs in page.elements)
    specs = [json.loads(text) for attrs, text in page.scripts if attrs.get("type") == "application/json"]
    assert len(specs) == 6  # three for each of two metrics
    assert all(set(re.findall(r"https?://[^/\"]+", json.dumps({**s, "$schema": ""}))) == set() for s in specs)


def test_hostile_texts_are_only_text(run):
    store = run(
        costs={HOSTILE: 1.25}, blocks=6, study=HOSTILE, question=HOSTILE, message=HOSTILE,
        failing={(2, "native-again"): Outcome.PROGRAM_FAILED}, outputs=True,
        output=HOSTILE.encode() + b"\x00\xff\x1b[2J",
        workloads=[Workload(HOSTILE, TCP.metrics, (("factor", HOSTILE),))],
        flags={(1, HOSTILE): (Flag(FlagCode.OTHER, text=HOSTILE), Flag(HOSTILE, HOSTILE))},
        facts={HOSTILE: {f"not honoured: {HOSTILE}": HOSTILE}},
    )  # fmt: skip
    page = page_of(store)
    assert len(page.scripts) == 7 and not page.all("img")  # six charts and ours
    assert all(not name.startswith("on") for _, attrs in page.elements for name in attrs)
    assert HOSTILE in page.text and "49" not in page.text.split("How to read this")[1]
    for attrs, text in page.scripts:
        if attrs.get("type") == "application/json":
            assert "<" not in text and "environment" in json.dumps(json.loads(text))
    check_links(page, store.directory)


def test_the_page_of_a_run_without_a_finished_trial_has_no_script(run):
    assert not page_of(run(costs={"bridge": 1.25}, blocks=0)).scripts


@pytest.mark.parametrize("blocks", [1, 3])
def test_few_blocks_and_zero_values(run, blocks):
    lossy = Workload("udp", [(LOSS, 0.05, 2.0)])
    store = run(costs={"bridge": 1.25}, workloads=[TCP, lossy], blocks=blocks, aa=False)
    page = page_of(store)
    check_links(page, store.directory)
    told = page.text.split("How to read")[0]
    assert "too few rounds" in told and "points" not in told and "±" not in told


def test_the_page_stays_small(run):
    cells = [Workload(f"w{n}", TCP.metrics) for n in range(6)]
    store = run(
        costs={f"e{n}": 1.1 for n in range(3)}, workloads=cells, outputs=True, output=b'{"a": "' + b"x" * 9000 + b'"}'
    )
    page = store.directory / "report.html"
    write_html(store, page)
    assert ALL_EXCERPTS_BYTES / 2 < page.stat().st_size < 2_100_000  # with the chart library, 900 kB more


def test_the_trials_of_a_large_page_are_packed_with_the_same_markup(run, monkeypatch):
    store = run(
        costs={"bridge": 1.25}, failing={(3, "bridge"): Outcome.DEADLINE}, message=HOSTILE, output=HOSTILE.encode()
    )
    plain = page_of(store)
    monkeypatch.setattr("weighbridge.report.sections.trials.PLAIN_CHARACTERS", 1000)
    page = page_of(store)
    packed = [text for attrs, text in page.scripts if attrs.get("type") == "application/gzip"]
    trials = " ".join(attrs["data-trials"] for attrs in page.all("details") if attrs.get("class") == "group").split()
    unpacked = [Page(gzip.decompress(base64.b64decode(each)).decode()) for each in packed]
    ids = {attrs["id"] for each in unpacked for _, attrs in each.elements if "id" in attrs}
    assert len(packed) == 3 and ids == {f"t{each}" for each in trials} and len(trials) == 30
    links = [[attrs["href"] for attrs in each.all("a")] for each in (plain, *unpacked)]
    assert [*itertools.chain.from_iterable(links[1:])] == [link for link in links[0] if link.startswith("raw/")]
    assert not any(each.all("script") or each.all("img") for each in unpacked)
    assert not any(attrs.get("class") == "trial" for attrs in page.all("details"))


def test_the_chart_library_is_kept_unless_others_could_write_it(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path))
    bundled = []
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda *_, **__: bundled.append(1) or "let vega;")
    library = chart_library.__wrapped__
    assert [library(), library(), len(bundled)] == ["let vega;", "let vega;", 1]
    (file,) = (tmp_path / "charts").iterdir()
    file.chmod(0o666)
    assert [library(), len(bundled)] == ["let vega;", 2]
    file.unlink()
    file.symlink_to("/etc/hostname")
    assert [library(), len(bundled)] == ["let vega;", 3]
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", "/proc/nowhere")
    assert [library(), len(bundled)] == ["let vega;", 4]


def test_what_is_kept_in_a_folder_that_others_may_write_to_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path))
    folder, elsewhere = tmp_path / "charts", tmp_path / "elsewhere"
    write_cached("charts/a.js", b"ours")
    assert read_cached("charts/a.js") == b"ours"
    folder.chmod(0o777)
    assert read_cached("charts/a.js") == b""
    write_cached("charts/b.js", b"ours")
    assert [file.name for file in folder.iterdir()] == ["a.js"]
    folder.chmod(0o700)
    assert read_cached("charts/a.js") == b"ours"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    assert read_cached("charts/a.js") == b""
    folder.unlink()
    elsewhere.rename(folder)
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    assert read_cached("charts/a.js") == b""


def test_templates_are_kept_compiled_unless_others_could_write_them(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path))
    compiled = []
    whole = jinja2.Environment.compile
    monkeypatch.setattr(
        jinja2.Environment, "compile", lambda self, *a, **k: compiled.append(1) or whole(self, *a, **k)
    )

    def page() -> str:
        return templates.__wrapped__().get_template("parts.html.j2").render()

    assert page() == page() and len(compiled) == 1
    (file,) = (tmp_path / "templates").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o666)
    assert page() is not None and len(compiled) == 2
    file.write_bytes(b"damaged")
    assert page() is not None and len(compiled) == 3


OLD = """\
study: old
userland: {kind: host, env: {TOKEN: canary, PATH: /usr/bin}}
workloads: {w: {kind: command, run: [true]}}
"""


def test_what_an_older_version_stored_of_variables_is_not_shown(run):
    with RunStore(run(costs={"bridge": 1.1}).directory, writable=True) as store:
        store.set_info("study_text", OLD)
        store._db.execute("DELETE FROM run WHERE key = 'secrets'")
        page = page_of(store)
        assert "canary" not in page.text and "TOKEN" in page.text and "/usr/bin" in page.text
        store.set_info("secrets", json.dumps({"db.PW": "0123:4567"}))
        store.set_info("study_text", OLD.replace("canary", "${secret:db.PW}"))
        page = page_of(store)
        assert "db.PW" in page.text and "0123:4567" not in page.text
