"""Writes down which claims of the papers the tests have checked, and on what: `--claims FILE`."""

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
        given = item.callspec.params if hasattr(item, "callspec") else {}
        plain = {k: v if isinstance(v, int | float | str) else str(v) for k, v in given.items()}
        for mark in item.iter_markers("claim"):
            item.user_properties.append(("claim", [*mark.args, ""][:2]))
            item.user_properties.append(("parameters", plain))


class Ledger:
    """Outcomes by claim and test function, parameters counted, and what the passed runs were on."""

    def __init__(self, path: Path):
        self.path = path
        self.found = defaultdict(lambda: defaultdict(lambda: {"passed": 0, "failed": 0}))
        self.runs = defaultdict(list)  # parameters of passed runs, by claim, test and template

    def pytest_runtest_logreport(self, report):
        if report.skipped or (report.when != "call" and report.passed):
            return
        test = report.nodeid.split("[")[0]
        parameters = dict(report.user_properties).get("parameters", {})
        for kind, value in report.user_properties:
            if kind == "claim":
                self.found[value[0]][test][report.outcome] += 1
                if report.passed and value[1]:
                    self.runs[value[0], test, value[1]].append(parameters)

    def pytest_sessionfinish(self):
        from companion.theory.claims import checked

        for (name, test, template), runs in self.runs.items():
            self.found[name][test]["checked"] = checked(template, runs)
        ordered = {name: dict(sorted(tests.items())) for name, tests in sorted(self.found.items())}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(ordered, indent=1, ensure_ascii=False)
        self.path.write_text(text + "\n", encoding="utf8")
