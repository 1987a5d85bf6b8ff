"""Which option is the load of which workload is kept with the run: its report must not need the plug-ins."""

from weighbridge.model.study import Cell, Study
from weighbridge.runner.run import loads_of


def test_the_loads_of_a_study_are_those_that_its_workloads_name():
    kinds = {"web": "nginx-wrk", "db": "mysql-oltp", "kv": "redis-benchmark", "tcp": "iperf3"}
    cells = tuple(
        Cell(workload=name, kind=kind, level=(("n", level),), options=None)
        for name, kind in kinds.items()
        for level in "12"
    )
    study = Study.model_construct(text="", file=None, arms=(), cells=cells)
    assert loads_of(study) == {"web": "connections", "db": "threads", "kv": "clients"}
