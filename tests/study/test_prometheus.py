"""What a study may say of a Prometheus server, and each mistake in it as one line. No password is ever repeated."""

import pytest

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.model.study import Prometheus

from .test_mistakes import told
from .test_schema import _accepts
from .texts import changed, loaded

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
    "no url": f"{{{QUERIES}}}",
    "no queries": "{url: http://h}",
    "no query": "{url: http://h, queries: {}}",
    "another scheme": f"{{url: 'ftp://h', {QUERIES}}}",
    "no scheme": f"{{url: 'h:9090', {QUERIES}}}",
    "no host": f"{{url: 'http://', {QUERIES}}}",
    "a wrong port": f"{{url: 'http://h:http', {QUERIES}}}",
    "a port beyond": f"{{url: 'http://h:70000', {QUERIES}}}",
    "spaces": f"{{url: 'http://h h', {QUERIES}}}",
    "letters": f"{{url: 'http://hä', {QUERIES}}}",
    "a query in it": f"{{url: 'http://h/?a=b', {QUERIES}}}",
    "a list": f"{{url: [http://h], {QUERIES}}}",
    "a bare query": "{url: http://h, queries: {reads: up}}",
    "no unit": "{url: http://h, queries: {reads: {query: up}}}",
    "a unit with spaces": "{url: http://h, queries: {reads: {query: up, unit: per s}}}",
    "an empty query": "{url: http://h, queries: {reads: {query: '', unit: B}}}",
    "a wrong key": "{url: http://h, queries: {reads: {qurey: up, unit: B}}}",
    "a wrong name": "{url: http://h, queries: {1 x: {query: up, unit: B}}}",
    "no step": f"{{url: http://h, {QUERIES}, step: 0s}}",
    "no unit of the step": f"{{url: http://h, {QUERIES}, step: 5}}",
    "no mapping": "http://h",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_told_where_it_is(name: str):
    with raises_sentence(StudyError):
        loaded(study(MISTAKES[name]))


@pytest.mark.parametrize(
    "url", ["http://joe:secret@h:9090", "http://secret@h", "https://joe:secret@[::1]", "http://joe:secret@h?x",
            "http://joe:secret@h:port", "http://joe:secret@h h", "secret@h", "ftp://joe:secret@h"]
)  # fmt: skip
def test_a_password_is_refused_and_not_repeated(url: str):
    text = study(f"{{url: '{url}', {QUERIES}}}")
    ((_, sentence),) = told(text)
    assert "secret" not in sentence and sentence.startswith("url: ")
    assert not _accepts(text)
