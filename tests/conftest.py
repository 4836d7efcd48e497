"""Writes down which claims of the papers the tests have checked, with `--claims FILE`."""

import json
from collections import defaultdict
from pathlib import Path

import pytest


def pytest_addoption(parser):
    parser.addoption("--claims", type=Path, help="write the outcome of each claim's tests here")


def pytest_configure(config):
    if config.getoption("--claims") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Ledger(config.getoption("--claims")))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        for mark in item.iter_markers("claim"):
            item.user_properties.append(("claim", mark.args[0]))


class Ledger:
    """Outcomes by claim and test function, parameters counted."""

    def __init__(self, path: Path):
        self.path = path
        self.found = defaultdict(lambda: defaultdict(lambda: {"passed": 0, "failed": 0}))

    def pytest_runtest_logreport(self, report):
        if report.when != "call" and report.passed:
            return
        for kind, name in report.user_properties:
            if kind == "claim" and not report.skipped:
                test = report.nodeid.split("[")[0]
                self.found[name][test][report.outcome] += 1

    def pytest_sessionfinish(self):
        ordered = {name: dict(sorted(tests.items())) for name, tests in sorted(self.found.items())}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf8")
