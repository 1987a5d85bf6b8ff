"""The compose file, the exporters' settings and what run_here.py makes of them."""

import argparse
import importlib.util
import re
import sys
from typing import Any

import pytest
from ruamel.yaml import YAML

from sentences import raises_sentence

from .reading import DASHBOARDS, MONITORING, load

OURS = "weighbridge-cadvisor"
JOBS = {"prometheus", "node", "process", "cadvisor", "weighbridge"}


def _yaml(name: str) -> Any:
    return YAML(typ="safe").load((MONITORING / name).read_text(encoding="utf-8"))


def _run_here() -> Any:
    spec = importlib.util.spec_from_file_location("run_here", MONITORING / "run_here.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["run_here"] = module
    spec.loader.exec_module(module)
    return module


run_here = _run_here()
COMPOSE = _yaml("compose.yaml")
SERVICES = pytest.mark.parametrize("name", COMPOSE["services"])
TEMPLATE = (MONITORING / "prometheus.yml").read_text(encoding="utf-8")


def _texts(service: dict[str, Any]) -> list[str]:
    return [*service.get("command", ()), *(f"{key}={value}" for key, value in service.get("environment", {}).items())]


@SERVICES
def test_every_image_is_pinned_and_from_no_named_registry(name):
    image, _, tag = COMPOSE["services"][name]["image"].partition(":")
    assert re.fullmatch(r"v?\d+\.\d+\.\d+", tag), image
    assert "." not in image.partition("/")[0]
    assert ("build" in COMPOSE["services"][name]) == (image == OURS)


@SERVICES
def test_everything_listens_on_loopback_only(name):
    service = COMPOSE["services"][name]
    assert "ports" not in service and service["network_mode"] == "host"
    text = " ".join(_texts(service))
    assert re.search(r"(listen(-address)?|HTTP_ADDR)=127\.0\.0\.1", text)
    assert set(re.findall(r"\d+\.\d+\.\d+\.\d+", text)) == {"127.0.0.1"}


@SERVICES
def test_every_service_is_limited_and_writes_only_to_its_own_volume(name):
    service = COMPOSE["services"][name]
    assert service["cpus"] <= 0.5 and service["mem_limit"] and service["pids_limit"]
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert "privileged" not in service
    for volume in service.get("volumes", ()):
        source, _, _ = volume.partition(":")
        assert source in COMPOSE["volumes"] or re.search(r":ro(,rslave)?$", volume), volume


def test_no_password_is_written_down_and_none_is_guessed():
    environment = COMPOSE["services"]["grafana"]["environment"]
    assert environment["GF_SECURITY_ADMIN_PASSWORD"].startswith("${GRAFANA_ADMIN_PASSWORD:?")
    assert [key for key in environment if "PASSWORD" in key or "SECRET" in key] == ["GF_SECURITY_ADMIN_PASSWORD"]
    assert (environment["GF_AUTH_ANONYMOUS_ENABLED"], environment["GF_AUTH_ANONYMOUS_ORG_ROLE"]) == ("true", "Viewer")


def test_what_is_mounted_is_there():
    for service in COMPOSE["services"].values():
        for volume in service.get("volumes", ()):
            if volume.startswith("./"):
                assert (MONITORING / volume.partition(":")[0]).exists(), volume
    assert (MONITORING / COMPOSE["services"]["cadvisor"]["build"] / "Dockerfile").is_file()


def test_the_data_source_is_the_prometheus_and_the_dashboards_choose_it():
    (source,) = _yaml("grafana/provisioning/datasources/prometheus.yml")["datasources"]
    settings = _yaml("prometheus.yml")
    (server,) = [job for job in settings["scrape_configs"] if job["job_name"] == "prometheus"]
    assert source["url"] == f"http://{server['static_configs'][0]['targets'][0]}"
    assert source["jsonData"]["timeInterval"] == settings["global"]["scrape_interval"]
    for path in DASHBOARDS:
        (chosen,) = [each for each in load(path)["templating"]["list"] if each["type"] == "datasource"]
        assert chosen["current"]["value"] == source["uid"]
    (provider,) = _yaml("grafana/provisioning/dashboards/weighbridge.yml")["providers"]
    assert f"./grafana/dashboards:{provider['options']['path']}:ro" in COMPOSE["services"]["grafana"]["volumes"]


def test_compose_and_run_here_start_the_exporters_alike():
    node = COMPOSE["services"]["node-exporter"]["command"]
    collectors = [text for text in node if text.startswith("--collector.") and "=" not in text]
    assert [text.removeprefix("--collector.") for text in collectors] == [
        "disable-defaults", *run_here.COLLECTORS,
    ]  # fmt: skip
    listening = " ".join(text for service in COMPOSE["services"].values() for text in _texts(service))
    for port in run_here.PORTS.values():
        assert f"127.0.0.1:{port}" in listening
        assert f'"127.0.0.1:{port}"' in TEMPLATE


def test_groups_are_of_names_that_the_kernel_can_have():
    groups = _yaml("process-exporter.yml")["process_names"]
    names = {group["name"]: group["comm"] for group in groups}
    assert len(names) == len(groups)
    every = [comm for comms in names.values() for comm in comms]
    assert len(set(every)) == len(every) and all(len(comm) <= 15 for comm in every)
    generators = {"wrk", "vegeta", "sysbench", "redis-benchmark"}
    assert generators | {"nginx", "mysql", "redis-server", "dockerd", "containerd"} <= set(names)


def _targets(text: str) -> dict[str, str]:
    jobs = YAML(typ="safe").load(text)["scrape_configs"]
    return {job["job_name"]: job["static_configs"][0]["targets"][0] for job in jobs}


def test_run_here_shifts_ports_and_leaves_out_what_does_not_run():
    assert set(_targets(TEMPLATE)) == JOBS
    text = run_here.configured(TEMPLATE, 1000, "2s", "127.0.0.1:9999", {"prometheus", "node", "process"})
    assert _targets(text) == {
        "prometheus": "127.0.0.1:10090", "node": "127.0.0.1:10100", "process": "127.0.0.1:10256",
        "weighbridge": "127.0.0.1:9999",
    }  # fmt: skip
    settings = YAML(typ="safe").load(text)
    assert settings["global"] == {"scrape_interval": "2s", "scrape_timeout": "2s"}
    assert settings["scrape_configs"][-1]["scrape_interval"] == "1s"


def test_run_here_without_options_keeps_the_file_but_for_the_time_limit():
    text = run_here.configured(TEMPLATE, 0, "5s", run_here.RUN, JOBS)
    assert text == TEMPLATE.replace("scrape_timeout: 4s", "scrape_timeout: 5s", 1)


@pytest.mark.parametrize("wrong", ["0s", "5", "-1s", "1m", "", "5s\n", "1000s"])
def test_a_wrong_interval_is_refused(wrong):
    with pytest.raises(argparse.ArgumentTypeError):
        run_here._interval(wrong)


@pytest.mark.parametrize("wrong", ["-1", "60000", "x", "", "1.5"])
def test_a_wrong_shift_is_refused(wrong):
    with pytest.raises(argparse.ArgumentTypeError):
        run_here._shift(wrong)


@pytest.mark.parametrize("wrong", ["0.0.0.0:9464", "9464", "localhost", "127.0.0.1", "10.0.0.1:9464"])
def test_only_a_run_on_loopback_is_watched(wrong):
    with pytest.raises(argparse.ArgumentTypeError):
        run_here._address(wrong)


def test_a_missing_program_is_named_with_its_package(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises_sentence(run_here.Failed):
        run_here.programs(tmp_path, 0, None)
