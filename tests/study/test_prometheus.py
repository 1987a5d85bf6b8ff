"""What a study may say of a Prometheus server, and each mistake in it as one line. No password is ever repeated."""

import pytest

from weighbridge.model.study import Prometheus

from .test_mistakes import told
from .test_schema import _accepts
from .texts import changed, line_of, loaded

QUERIES = "queries: {reads: {query: 'rate(x[5s])', unit: B/s}}"


def study(prometheus: str) -> str:
    return changed("seed: 7", f"seed: 7\nprometheus: {prometheus}")


def test_without_one_there_is_none():
    assert loaded(changed("seed: 7", "seed: 8")).file.prometheus is None


@pytest.mark.parametrize(
    ("url", "kept"),
    [("http://127.0.0.1:9090", "http://127.0.0.1:9090"), ("https://prometheus.example/behind/", "https://"
      "prometheus.example/behind"), ("http://[::1]:9090/", "http://[::1]:9090")],
)  # fmt: skip
def test_a_server(url: str, kept: str):
    text = study(f"{{url: '{url}', {QUERIES}, step: 5s}}")
    found = loaded(text).file.prometheus
    assert found == Prometheus.model_validate(
        {"url": kept, "queries": {"reads": {"query": "rate(x[5s])", "unit": "B/s"}}, "step": "5s"}
    )
    assert found is not None and found.step == 5.0
    assert _accepts(text)


def test_it_is_asked_every_second_by_itself():
    found = loaded(study(f"{{url: http://127.0.0.1:9090, {QUERIES}}}")).file.prometheus
    assert found is not None and found.step == 1.0


MISTAKES = {
    "no url": (f"{{{QUERIES}}}", "'url' is missing"),
    "no queries": ("{url: http://h}", "'queries' is missing"),
    "no query": ("{url: http://h, queries: {}}", "queries: must have at least 1 entry, not 0"),
    "another scheme": (
        f"{{url: 'ftp://h', {QUERIES}}}",
        "url: write the server's address like http://127.0.0.1:9090",
    ),
    "no scheme": (f"{{url: 'h:9090', {QUERIES}}}", "url: write the server's address like"),
    "no host": (f"{{url: 'http://', {QUERIES}}}", "url: write the server's address like"),
    "a wrong port": (f"{{url: 'http://h:http', {QUERIES}}}", "url: write the server's address like"),
    "a port beyond": (f"{{url: 'http://h:70000', {QUERIES}}}", "url: write the server's address like"),
    "spaces": (f"{{url: 'http://h h', {QUERIES}}}", "url: write the address in ASCII"),
    "letters": (f"{{url: 'http://hä', {QUERIES}}}", "in ASCII"),
    "a query in it": (f"{{url: 'http://h/?a=b', {QUERIES}}}", "url: end the address before '?'"),
    "a list": (f"{{url: [http://h], {QUERIES}}}", "url: must be text"),
    "a bare query": (
        "{url: http://h, queries: {reads: up}}",
        "reads: must be 'key: value' pairs",
    ),
    "no unit": ("{url: http://h, queries: {reads: {query: up}}}", "'unit' is missing"),
    "a unit with spaces": (
        "{url: http://h, queries: {reads: {query: up, unit: per s}}}",
        "unit: must match the pattern",
    ),
    "an empty query": (
        "{url: http://h, queries: {reads: {query: '', unit: B}}}",
        "query: must have at least 1 character",
    ),
    "a wrong key": ("{url: http://h, queries: {reads: {qurey: up, unit: B}}}", "Did you mean 'query'?"),
    "a wrong name": ("{url: http://h, queries: {1 x: {query: up, unit: B}}}", "a name starts with a letter"),
    "no step": (f"{{url: http://h, {QUERIES}, step: 0s}}", "step: must be from 100 ms to 1 h"),
    "no unit of the step": (f"{{url: http://h, {QUERIES}, step: 5}}", "step: 5 has no unit"),
    "no mapping": ("http://h", "prometheus: must be 'key: value' pairs"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_told_where_it_is(name: str):
    prometheus, words = MISTAKES[name]
    text = study(prometheus)
    lines = told(text)
    assert [number for number, _ in lines] == [line_of(text, "prometheus:")] * len(lines)
    assert any(words in sentence for _, sentence in lines), lines


@pytest.mark.parametrize(
    "url", ["http://joe:secret@h:9090", "http://secret@h", "https://joe:secret@[::1]", "http://joe:secret@h?x",
            "http://joe:secret@h:port", "http://joe:secret@h h", "secret@h", "ftp://joe:secret@h"]
)  # fmt: skip
def test_a_password_is_refused_and_not_repeated(url: str):
    text = study(f"{{url: '{url}', {QUERIES}}}")
    ((_, sentence),) = told(text)
    assert "secret" not in sentence and sentence.startswith("url: ")
    assert not _accepts(text)
