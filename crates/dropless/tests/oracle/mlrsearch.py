"""Runs the reference implementation of MLRsearch over paths on paper: cases as JSON on stdin, results on stdout.

A case: {"min": pps, "max": pps, "limit": pps, "buffer": packets,
         "goals": [{"loss": 0.0, "exceed": 0.5, "width": 0.005, "initial": s, "final": s, "sum": s}]}
"""

import json
import sys

from MLRsearch import (
    AbstractMeasurer,
    Config,
    MeasurementResult,
    MultipleLossRatioSearch,
    SearchGoal,
)


class Path(AbstractMeasurer):
    """The same path as measure::search::ModelPath: a limit behind a buffer."""

    def __init__(self, limit, buffer):
        self.limit = limit
        self.buffer = buffer
        self.trials = 0
        self.seconds = 0.0

    def measure(self, intended_duration, intended_load):
        self.trials += 1
        self.seconds += intended_duration
        offered = int(intended_load * intended_duration)
        carried = int(self.limit * intended_duration + self.buffer + 1e-6)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=offered,
            loss_count=max(0, offered - carried),
        )


def search(case):
    goals = [
        SearchGoal(
            loss_ratio=goal["loss"],
            exceed_ratio=goal["exceed"],
            relative_width=goal["width"],
            initial_trial_duration=goal["initial"],
            final_trial_duration=goal["final"],
            duration_sum=goal["sum"],
            preceding_targets=2,
            expansion_coefficient=2,
            fail_fast=False,
        )
        for goal in case["goals"]
    ]
    config = Config()
    config.goals = goals
    config.max_load = case["max"]
    config.min_load = case["min"]
    config.warmup_duration = None
    config.search_duration_max = 1e9
    path = Path(case["limit"], case["buffer"])
    found = MultipleLossRatioSearch(config).search(path, debug=lambda text: None)
    results = []
    for goal in goals:
        result = found[goal]
        lower, upper = result.relevant_lower_bound, result.relevant_upper_bound
        throughput = result.conditional_throughput
        results.append(
            {
                "lower": float(lower) if lower else None,
                "upper": float(upper) if upper else None,
                "conditional": float(throughput) if throughput else None,
            }
        )
    return {"goals": results, "trials": path.trials, "seconds": path.seconds}


json.dump([search(case) for case in json.load(sys.stdin)], sys.stdout)
