"""Measure on each idle node what isolation costs there.

Run it by ``reframe -c reframe_weighbridge.py -r --distribute=idle -S fleet=$PWD/fleets/$(date +%F)``.
"""

import json
import re
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.exceptions import SanityError


@rfm.simple_test
class Isolation(rfm.RunOnlyRegressionTest):
    """Fails where nothing was measured, the control shows a cost, or one beyond ``margin`` percent is proven."""

    study = variable(str, value="first-look")
    fleet = variable(str)  # a folder that all nodes share, a new one each time: finished runs are not repeated
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
        if not self.costs():
            said = re.findall("^weighbridge: .*", Path(self.stagedir, str(self.stderr)).read_text(), re.MULTILINE)
            raise SanityError(said[0] if said else f"nothing was measured: see {self.stderr}")
        return sn.assert_ne(self.report()["control_passed"], False, "the control shows a cost: see report.json")

    @run_before("performance")
    def take_costs(self):
        self.perf_variables, bounds = {}, {}
        for cost in self.costs():
            if cost["cost_unit"] != "%":
                continue
            level = map(str, cost["level"].values())
            name = "_".join([cost["environment"], cost["workload"], cost["metric"], *level])
            # the cost itself is kept, and the lower end of its interval judged
            for key, most in (("cost", None), ("cost_low", self.margin)):
                value = sn.make_performance_function(sn.defer(round(cost[key], 2)), "%")
                self.perf_variables[f"{name}_{key}"] = value
                bounds[f"{name}_{key}"] = (0, None, most, "%")
        self.reference = {"*": bounds}

    def report(self):
        return json.loads(Path(self.stagedir, "report.json").read_text() or '{"costs": []}')

    def costs(self):
        mine = (cost for cost in self.report()["costs"] if cost["primary"] and not cost["control"])
        return [cost for cost in mine if cost["cost_low"] is not None]
