"""Look at built pages the way a strict reader would.

No page loads anything from another host, every file it loads is there, every figure has a caption
and says in a sentence what it shows, no output is debris, and every Colab link opens a notebook.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

from .svg import is_sentence

LOADS = {  # attributes through which an element loads a file
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "base": ("href",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
}
NAVIGATION = {"canonical", "alternate", "next", "prev", "author", "license", "search", "index"}
DEBRIS = ".stderr, .traceback, .highlight-ipythontb"
COLAB = re.compile(r"https://colab\.research\.google\.com/github/[^/]+/[^/]+/blob/[^/]+/(.+)")
_REMOTE_STYLE = re.compile(r"(?:url\(\s*|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)")
_REMOTE_MODULE = re.compile(
    r"(?:\bfrom|\bimport|\bfetch|\bimportScripts)\s*\(?\s*\\*[\"'`](https?://[^\"'`\\]+)"
)
_PROGRESS = re.compile(r"\d\s?(?:it/s|s/it)\b")


def is_remote(url: str) -> bool:
    """Whether a URL leaves the site.

    >>> [is_remote(u) for u in ("https://cdn.test/a.js", "//cdn.test/a.js", "../_static/a.js")]
    [True, True, False]
    """
    return url.startswith("//") or urlsplit(url).scheme in {"http", "https", "ws", "wss"}


def loaded(page: BeautifulSoup) -> Iterator[str]:
    """URLs of the files that a page loads, anchors within the page left out."""
    for element in page.find_all(list(LOADS)):
        if element.name == "link" and NAVIGATION & set(element.get("rel", ())):
            continue
        for attribute in LOADS[element.name]:
            value = element.get(attribute, "")
            parts = value.split(",") if attribute == "srcset" else [value]
            yield from (
                p.split()[0] for p in parts if p.strip() and not p.startswith(("#", "data:"))
            )


def load_problems(page: BeautifulSoup, path: Path) -> Iterator[str]:
    """Files from elsewhere, and local files that are missing."""
    for url in loaded(page):
        if is_remote(url):
            yield f"loads {url}, expected a file of this site"
        elif not (path.parent / unquote(urlsplit(url).path)).resolve().exists():
            yield f"loads {url}, which does not exist"
    styles = [tag.get_text() for tag in page.find_all("style")]
    styles += [tag["style"] for tag in page.find_all(style=True)]
    for url in (url for style in styles for url in _REMOTE_STYLE.findall(style)):
        yield f"loads {url} from a style, expected a file of this site"
    for script in page.find_all("script", src=False):
        for url in _REMOTE_MODULE.findall(script.get_text()):
            yield f"loads {url} from a script, expected a file of this site"


def label(picture: Tag) -> str:
    return picture.get("alt") or picture.get("aria-label") or ""


def figure_problems(article: Tag) -> Iterator[str]:
    """Pictures that do not say what they show, and computed ones without a caption."""
    for picture in article.find_all(["img", "svg"]):
        if picture.get("aria-hidden") == "true" or picture.find_parent("svg"):
            continue
        if not is_sentence(label(picture)):
            name = picture.get("src") or picture.get("id") or picture.name
            yield f"picture {name}: got label {label(picture)!r}, expected a sentence"
        if picture.find_parent(class_="cell_output"):
            figure = picture.find_parent("figure")
            if figure is None or figure.find("figcaption") is None:
                yield f"picture {label(picture)[:40]!r} has no caption"


def debris_problems(article: Tag) -> Iterator[str]:
    """What a run leaves behind and no reader wants to see."""
    for block in article.select(DEBRIS):
        yield f"shows an error or standard error: {block.get_text()[:80]!r}"
    for output in article.select(".cell_output"):
        text = output.get_text()
        if "\r" in text or _PROGRESS.search(text):
            yield f"shows a progress bar: {text.strip()[:80]!r}"


def launch_problems(page: BeautifulSoup, root: Path) -> Iterator[str]:
    """Colab links whose notebook is not in the repository."""
    for anchor in page.find_all("a", href=COLAB):
        path = unquote(COLAB.match(anchor["href"])[1])
        if not path.endswith(".ipynb") or not (root / path).is_file():
            yield f"opens {path} on Colab, expected a notebook of the repository"


def page_problems(path: Path, root: Path) -> list[str]:
    """Everything wrong with one page of the book whose repository is at ``root``."""
    with path.open(encoding="utf8", newline="") as file:  # keeps carriage returns
        page = BeautifulSoup(file.read(), "html.parser")
    article = page.find("article") or page
    found = [*load_problems(page, path), *figure_problems(article), *debris_problems(article)]
    return found + list(launch_problems(page, root))


def site_problems(html: Path, root: Path) -> list[str]:
    """Everything wrong with a built book, one line each, starting with the file's name."""
    problems = []
    for path in sorted(html.rglob("*.html")):
        if "_static" not in path.relative_to(html).parts:
            found = page_problems(path, root)
            problems += [f"{path.relative_to(html).as_posix()}: {text}" for text in found]
    for path in sorted(html.rglob("*.css")):
        remote = _REMOTE_STYLE.findall(path.read_text(encoding="utf8"))
        problems += [f"{path.relative_to(html).as_posix()}: loads {url}" for url in remote]
    return problems
