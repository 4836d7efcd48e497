"""The Sphinx extension that turns executed notebooks into quiet pages that need no network.

It reads each notebook's executed twin in place of the file in git, serves MathJax and the widget
runtime from the site itself, puts SVG figures into the page, and drops buttons that would lead
nowhere while the repository's address is unknown.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import anywidget
import myst_nb.core.render
from sphinx.application import Sphinx
from sphinx.util import logging

from . import execute
from .address import read_address
from .ledger import Ledger
from .ranges import RangeTable, RefusalList
from .separations import Separations
from .separations_explorer import SeparationsDirective
from .svg import inline_figures
from .tested import SourceRole, Sources
from .workspace import Workspace

log = logging.getLogger(__name__)
STATIC = Path(__file__).parent / "static"
REMOTE_BUTTONS = {
    "launch-buttons",
    "source-buttons",
    "source-repository-button",
    "source-issues-button",
}


def escape_script(text: str) -> str:
    """Text to put into a script element: it can neither end it nor open a comment in it.

    >>> escape_script('"a < b </SCRIPT> <!-- c"')
    '"a < b \\\\u003c/SCRIPT> \\\\u003c!-- c"'
    """
    return re.sub(r"<(?=!--|/?script)", r"\\u003c", text, flags=re.IGNORECASE)


def set_local_paths(app: Sphinx, config) -> None:
    """Point MathJax, the widget runtime and the icon at files of the site."""
    config.mathjax_path = "offline/mathjax/es5/tex-svg-full.js"
    config.nb_ipywidgets_js = {
        "offline/requirejs/require.js": {},
        "offline/widgets-config.js": {},
        "offline/html-manager/dist/embed-amd.js": {},
    }
    config.html_favicon = str(STATIC / "favicon.svg")


def copy_assets(app: Sphinx) -> None:
    """Lay the site's own files below ``_static/offline`` before any page refers to them."""
    out = Path(app.outdir, "_static", "offline")
    shutil.copytree(Workspace(Path(app.srcdir)).vendor, out, dirs_exist_ok=True)
    for name in ("book.css", "widgets-config.js"):
        shutil.copy2(STATIC / name, out / name)
    # anywidget's own wheel carries the browser module that fits its version
    module = Path(anywidget.__file__).parent / "nbextension" / "index.js"
    (out / "anywidget").mkdir(exist_ok=True)
    shutil.copy2(module, out / "anywidget" / "index.js")


def read_environment(app: Sphinx) -> None:
    app.companion_environment = execute.environment_key(Workspace(Path(app.srcdir)))


def use_executed_twin(app: Sphinx, docname: str, source: list[str]) -> None:
    """Read a notebook's executed twin; a missing or stale one is a warning, hence a failure."""
    path = Path(app.env.doc2path(docname))
    if path.suffix != ".ipynb":
        return
    twin = Workspace(Path(app.srcdir)).twin(path)
    app.env.note_dependency(str(twin))
    got = execute.stored_stamp(twin)
    if got is None:
        log.warning("not executed yet, run make book", location=docname, type="companion")
        return
    want = execute.stamp(path, app.companion_environment, got["parameters"])
    if got != want:
        log.warning("executed copy is stale, run make book", location=docname, type="companion")
    source[0] = twin.read_text(encoding="utf8")


def embed_figures(app: Sphinx, pagename: str, template: str, context: dict, doctree) -> None:
    """Inline the SVG figures of a page; a figure without a sentence of alt text is a warning."""
    if "body" not in context:
        return
    files = {f"/_images/{name}": path for path, name in app.builder.images.items()}

    def read(src: str) -> str | None:
        path = files.get("/" + src.lstrip("./"))
        return Path(app.srcdir, path).read_text(encoding="utf8") if path else None

    def complain(src: str) -> None:
        text = f"figure {src} has no sentence of alternative text"
        log.warning(text, location=pagename, type="companion")

    context["body"] = inline_figures(context["body"], read, complain)


def drop_thebe(app: Sphinx, pagename: str, template: str, context: dict, doctree) -> None:
    """Leave out the scripts of sphinx-thebe: one is remote, and two declare the same constant."""

    def wanted(script) -> bool:
        body = (getattr(script, "attributes", None) or {}).get("body") or ""
        name = str(getattr(script, "filename", script) or "")
        return "THEBE_JS_URL" not in body and "thebe" not in name

    context["script_files"] = [s for s in context.get("script_files", []) if wanted(s)]
    context["css_files"] = [
        s for s in context.get("css_files", []) if "thebe" not in str(getattr(s, "filename", s))
    ]


def drop_dead_buttons(app: Sphinx, pagename: str, template: str, context: dict, doctree) -> None:
    """Without a known address there is no repository to open: keep the local buttons only."""
    if not read_address(Path(app.srcdir)).known:
        buttons = context.get("header_buttons", [])
        context["header_buttons"] = [b for b in buttons if b.get("label") not in REMOTE_BUTTONS]


def setup(app: Sphinx) -> dict:
    myst_nb.core.render.sanitize_script_content = escape_script
    app.add_directive("separations", Separations)
    app.add_directive("separations-explorer", SeparationsDirective)
    app.add_directive("ledger", Ledger)
    app.add_directive("ranges", RangeTable)
    app.add_directive("refusals", RefusalList)
    app.add_directive("tests", Sources)
    app.add_role("test", SourceRole())
    app.connect("config-inited", set_local_paths, priority=100)
    app.connect("builder-inited", copy_assets)
    app.connect("builder-inited", read_environment)
    app.connect("source-read", use_executed_twin)
    app.connect("html-page-context", embed_figures, priority=600)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("html-page-context", drop_dead_buttons, priority=900)
    app.add_css_file("offline/book.css", priority=900)
    app.set_html_assets_policy("always")  # explorers may hold formulas on any page
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
