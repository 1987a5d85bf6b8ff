"""Measure on each node what isolation costs there.

Run it by ``reframe -c reframe_weighbridge.py -r --distribute=idle -S fleet=$PWD/fleet``.
"""

import json
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Isolation(rfm.RunOnlyRegressionTest):
    """Fails where the control shows a cost, or a cost beyond ``margin`` percent is proven."""

    study = variable(str, value="first-look")
    fleet = variable(str, value="fleet")  # a folder that all nodes share
    margin = variable(float, value=3.0)
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    exclusive_access = True
    time_limit = "1h"
    executable = "weighbridge"

    @run_before("run")
    def begin(self):
        directory = f"{Path(self.fleet).absolute()}/$(hostname -s)"
        self.executable_opts = ["run", self.study, "--out", directory, "--yes"]
        self.postrun_cmds = [f"weighbridge report {directory} --json > report.json"]

    @sanity_function
    def is_trusted(self):
        report = json.loads(Path(self.stagedir, "report.json").read_text())
        return sn.assert_ne(report["trusted"], False, "the control shows a cost: see 'shifted' in report.json")

    @run_before("performance")
    def take_costs(self):
        report = json.loads(Path(self.stagedir, "report.json").read_text())
        self.perf_variables, bounds = {}, {}
        for cost in report["costs"]:
            if not cost["headline"] or cost["aa"] or cost["cost_unit"] != "%" or cost["cost_low"] is None:
                continue
            level = map(str, cost["level"].values())
            name = "_".join([cost["environment"], cost["workload"], cost["metric"], *level])
            # the cost itself is kept, and the lower end of its interval judged
            for key, most in (("cost", None), ("cost_low", self.margin)):
                value = sn.make_performance_function(sn.defer(cost[key]), "%")
                self.perf_variables[f"{name}_{key}"] = value
                bounds[f"{name}_{key}"] = (0, None, most, "%")
        self.reference = {"*": bounds}
