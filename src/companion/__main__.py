"""The command line: ``companion AREA VERB``, also ``python -m companion``.

Each area of the package adds its own commands to the parser.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from companion import __doc__ as about
from companion import __version__
from companion.book.commands import add_book_commands
from companion.experiments.cli import add_sweep_command

AREAS = (add_book_commands, add_sweep_command)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="companion", description=about.splitlines()[0])
    top.add_argument("--version", action="version", version=__version__)
    areas = top.add_subparsers(dest="area", required=True)
    for add_commands in AREAS:
        add_commands(areas)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = parser().parse_args(arguments)
    try:
        return chosen.run(chosen)
    except ValueError as error:
        print(f"companion: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
