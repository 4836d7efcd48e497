"""How figures look: one ink, and a colour, a marker and a line style for each model and family.

Ink (text, axes, bounds) is one colour, which the built pages replace by that of the text around the
figure. A series has a colour legible on white and on the dark page, and besides it a marker and a
line style of its own, so that nothing is said by colour alone. The same model looks the same in
every chapter.
"""

import math
import re
import sys
import zlib
from collections.abc import Iterable, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, PercentFormatter

INK, PAPER = "#1b1b1f", "#fefefe"  # replaced by the page's colours of text and background
NEGATIVE, POSITIVE = "#3a7fd5", "#c96a12"
SOLID, DASHED, DOTTED, DASHDOT = "-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 1.5, 1, 1.5))

# name's first letters: colour, marker, line style
SERIES = {
    "transformer": ("#3a7fd5", "o", SOLID),
    "lstm": ("#d2502f", "s", DASHED),
    "linear_transformer": ("#2b8f57", "^", DASHDOT),
    "mamba": ("#9a5bd0", "D", DOTTED),
    "dss": ("#a47c14", "v", DASHED),
    "retnet": ("#188a96", "P", DASHDOT),
    "deltanet": ("#c8468f", "X", SOLID),
    "recurrent_delta": ("#b0603c", "<", DOTTED),
    "srwm": ("#6f74d8", ">", DASHED),
    "quasi_lstm": ("#71851f", "h", DASHDOT),
    "shift_register": ("#7b7f88", "p", SOLID),
    "random": ("#d2502f", "s", DASHED),
    "linear_hash": ("#2b8f57", "^", DASHDOT),
    "trace": ("#3a7fd5", "o", SOLID),
    "binary": ("#9a5bd0", "D", DOTTED),
}
# Of models that are not known, such as a reader's own: far from the six that the paper compares.
OTHERS = (("#c8468f", "X", SOLID), ("#5f9e1c", "h", DASHDOT), ("#7b7f88", "p", DASHED))
_APART = 70  # distance of two colours, red, green and blue up to 255, that are told apart
_DASHES = (SOLID, DASHED, DASHDOT, DOTTED)

# Zero is transparent, so that it is the page itself, light or dark.
DIVERGING = LinearSegmentedColormap.from_list(
    "diverging",
    [(0, NEGATIVE), (0.5, NEGATIVE + "00"), (0.5, POSITIVE + "00"), (1, POSITIVE)],
)

_RC = {
    "figure.figsize": (6.4, 3.9),
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "figure.max_open_warning": 0,
    "savefig.facecolor": "white",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "font.size": 11,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "lines.linewidth": 1.8,
    "lines.markersize": 6,
    "svg.fonttype": "path",
    "svg.hashsalt": "companion",
    **{
        key: INK
        for key in (
            "text.color",
            "axes.edgecolor",
            "axes.labelcolor",
            "axes.titlecolor",
            "xtick.color",
            "ytick.color",
            "legend.labelcolor",
        )
    },
}


def style() -> None:
    """Set the book's style; in IPython, also make figures SVG that is the same at every run.

    >>> style()
    >>> plt.rcParams["svg.hashsalt"]
    'companion'
    """
    plt.rcParams.update(_RC)
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        from matplotlib_inline import backend_inline

        backend_inline.set_matplotlib_formats("svg", metadata={"Date": None})


def look(name: str, avoid: Iterable[str] = ()) -> dict:
    """Colour, marker and line style of a model or family, by the longest prefix that is known.

    A name that is not known, such as a reader's own model, gets one of `OTHERS` by its first word,
    the same in every figure, unless that is close to a colour to `avoid`.

    >>> look("LSTM, width 128")["color"] == look("lstm")["color"]
    True
    >>> look("trace code")["marker"]
    'o'
    >>> look("mine") == look("mine-(1, 64)")
    True
    """
    known = _known(name)
    if known is not None:
        colour, marker, dash = SERIES[known]
    else:
        word = re.split("[^a-z]", name.lower())[0]
        start = zlib.crc32(word.encode()) % len(OTHERS)
        others = [*OTHERS[start:], *OTHERS[:start], *SERIES.values()]
        far = [one for one in others if all(_apart(one[0], colour) for colour in avoid)]
        colour, marker, dash = (far or others)[0]
    return {"color": colour, "marker": marker, "linestyle": dash}


def _letters(name: str) -> str:
    return name.lower().replace(" ", "_").replace("-", "_")


def _known(name: str) -> str | None:
    """The longest key of SERIES that the name begins with."""
    return max((key for key in SERIES if _letters(name).startswith(key)), key=len, default=None)


def _apart(a: str, b: str) -> bool:
    return 255 * math.dist(to_rgb(a), to_rgb(b)) >= _APART


def looks(names: Iterable[str]) -> dict[str, dict]:
    """A look for each name, all different: a second LSTM has hollow markers and another dash, a
    third one half-filled markers.

    >>> a, b = looks(["LSTM 64", "LSTM 128"]).values()
    >>> a["color"] == b["color"], a["linestyle"] == b["linestyle"], b["markerfacecolor"] == PAPER
    (True, False, True)
    """
    result: dict[str, dict] = {}
    names = list(names)
    taken = [SERIES[key][0] for key in map(_known, names) if key is not None]
    for name in names:
        mark = look(name, taken)
        taken.append(mark["color"])
        same = sum(mark["marker"] == other["marker"] for other in result.values())
        if same:
            start = _DASHES.index(mark["linestyle"])
            mark["linestyle"] = _DASHES[(start + same) % len(_DASHES)]
            mark["markerfacecolor"] = PAPER if same % 2 else mark["color"]
            mark |= {"fillstyle": "left", "markerfacecoloralt": PAPER} if same == 2 else {}
        result[name] = mark
    return result


def legend_above(ax: Axes, columns: int = 2) -> None:
    """A legend between title and axes, where it can hide no data."""
    handles, _ = ax.get_legend_handles_labels()
    if handles:
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(-0.02, 1.0),
            ncols=min(columns, len(handles)),
            columnspacing=1.6,
            handlelength=2.6,
        )


def chance_line(ax: Axes, chance: float) -> None:
    """The accuracy of guessing."""
    ax.axhline(chance, color=INK, lw=1, ls=DOTTED)
    ax.text(1.01, chance, "guess", transform=ax.get_yaxis_transform(), va="center")


def percent(ax: Axes) -> None:
    """Accuracy along y."""
    ax.set(ylabel="accuracy", ylim=(-0.03, 1.03))
    ax.yaxis.set_major_formatter(PercentFormatter(1))


TOP = 0.9999  # on an axis with nines: where no mistake at all is drawn


def nines(ax: Axes, low: float) -> None:
    """Accuracy along y from `low` up: 90, 99 and 99.9 % are equally far apart. 1 would be
    infinitely far, and is to be drawn at `TOP`.
    """
    ax.set_yscale("logit")
    ax.set(ylabel="accuracy", ylim=(low, 1 - 0.8 * (1 - TOP)))
    ax.set_yticks([0.5, 0.9, 0.99, 0.999, TOP], ["50%", "90%", "99%", "99.9%", "100%"])
    ax.yaxis.set_minor_locator(NullLocator())


def log2_x(ax: Axes, ticks: Sequence = ()) -> None:
    """Powers of two along x, written out while they are small; or given ticks."""
    ax.set_xscale("log", base=2)
    tick_powers(ax.xaxis)
    if ticks:
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])


def tick_powers(axis: Axis) -> None:
    """At most eight powers of two, written out while they are small."""

    def power(x: float, _: int) -> str:
        return f"{x:g}" if x < 10_000 else f"$2^{{{math.log2(x):.0f}}}$"

    axis.set_major_locator(LogLocator(base=2, numticks=8))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(power))
