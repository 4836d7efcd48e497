"""``companion book build | test | tidy``."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_book_commands(areas: argparse._SubParsersAction) -> None:
    """Add ``book`` and its verbs to the command line."""
    area = areas.add_parser("book", help="execute the notebooks, build and test the book")
    verbs = area.add_subparsers(dest="verb", required=True)
    build = verbs.add_parser("build", help="execute what changed and build the pages")
    test = verbs.add_parser("test", help="lint, hygiene, tests, book, browser")
    verbs.add_parser("tidy", help="rewrite what can be rewritten in the sources")
    for verb in (build, test):
        verb.add_argument("--jobs", type=int, default=0, help="notebooks at a time (0: one a core)")
        verb.add_argument("--timeout", type=int, default=600, help="seconds for one cell")
    build.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a parameter in the notebooks that declare it; may be given several times",
    )
    build.add_argument("--force", action="store_true", help="execute what is up to date, too")
    for verb in verbs.choices.values():
        verb.add_argument("--root", type=Path, default=Path(), help="folder of _config.yml")
        verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; return an exit status."""
    try:
        from . import build, execute
    except ModuleNotFoundError as missing:
        raise SystemExit(
            f"got no {missing.name}, expected companion[book,dev] to be installed"
        ) from None
    from .workspace import Workspace

    workspace = Workspace.at(arguments.root)
    if arguments.verb == "tidy":
        return build.tidy(workspace)
    if arguments.verb == "test":
        return build.verify(workspace, execute.Options(arguments.jobs, arguments.timeout))
    options = execute.Options(
        jobs=arguments.jobs,
        timeout=arguments.timeout,
        parameters=tuple(map(execute.parse_parameter, arguments.parameter)),
        force=arguments.force,
    )
    return build.build(workspace, options)
