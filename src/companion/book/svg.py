"""Put SVG figures into the page itself, so that their ink follows the page's theme.

A figure drawn with the sentinel colours INK and PAPER is legible on any background: ink becomes
the colour of the surrounding text, paper the colour of the page.
"""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

INK, PAPER = "#1b1b1f", "#fefefe"
WIDE = 500  # units of a viewBox, points; beyond it letters are too small on a phone
SENTENCE = 30  # characters that an alternative text has at least
_THEME = {INK: "currentColor", PAPER: "var(--pst-color-background, #fff)"}
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_IMG = re.compile(r"<img\b[^>]*>")
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_WHITE = re.compile(r"fill:\s*(#ffffff|#fff|white)\b")
_PIXELS = {"pt": 4 / 3, "in": 96.0, "px": 1.0, "": 1.0}

ET.register_namespace("", _SVG)
ET.register_namespace("xlink", _XLINK)


def inline_svg(text: str, name: str, alt: str) -> str:
    """An SVG document as an element to place in a page.

    ``name`` becomes the element's id and the prefix of every id inside; ``alt`` its label. A
    wide figure comes in a box in which it scrolls sideways where the page is narrow.

    >>> inline_svg(f'<svg xmlns="{_SVG}" width="6pt"><g id="a" fill="#1b1b1f"/></svg>', "f1", "Alt")
    '<svg xmlns="http://www.w3.org/2000/svg" id="f1" role="img" aria-label="Alt" \
class="companion-figure" style="max-width: 8px"><g id="f1-a" fill="currentColor" /></svg>'
    """
    root = ET.fromstring(text)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{_SVG}}}metadata" or _is_page_patch(child):
                parent.remove(child)
    for element in root.iter():
        _localise(element, name)
    width = _pixels(root.attrib.pop("width", ""))
    root.attrib.pop("height", None)
    kind = "companion-figure wide" if _is_wide(root) else "companion-figure"
    root.attrib.update({"id": name, "role": "img", "aria-label": alt, "class": kind})
    if width:
        root.set("style", f"max-width: {width:.0f}px")
    root.tail = None
    element = ET.tostring(root, encoding="unicode")
    return f'<span class="companion-scroll">{element}</span>' if _is_wide(root) else element


def _is_wide(root: ET.Element) -> bool:
    box = root.get("viewBox", "").split()
    return len(box) == 4 and float(box[2]) > WIDE


def _is_page_patch(element: ET.Element) -> bool:
    """Whether this is matplotlib's white rectangle behind the whole figure."""
    fills = (child.get("style", "") for child in element)
    return element.get("id") == "patch_1" and any(_WHITE.search(style) for style in fills)


def _localise(element: ET.Element, name: str) -> None:
    """Prefix ids and references of one element and put theme colours for sentinels."""
    for key, value in element.attrib.items():
        if key == "id":
            value = f"{name}-{value}"
        elif key in ("href", f"{{{_XLINK}}}href") and value.startswith("#"):
            value = f"#{name}-{value[1:]}"
        value = re.sub(r"url\(#", f"url(#{name}-", value)
        element.set(key, _themed(value))
    if element.tag == f"{{{_SVG}}}style" and element.text:
        scoped = re.sub(r"([^{},]+)(?=[{,])", lambda m: f"#{name} {m[1].strip()}", element.text)
        element.text = _themed(scoped)


def _themed(text: str) -> str:
    for sentinel, colour in _THEME.items():
        text = re.sub(sentinel, colour, text, flags=re.IGNORECASE)
    return text


def _pixels(length: str) -> float | None:
    """A CSS length in pixels; None if it is relative or absent."""
    match = re.fullmatch(r"([\d.]+)(pt|in|px|)", length.strip())
    return float(match[1]) * _PIXELS[match[2]] if match else None


def is_sentence(alt: str) -> bool:
    """Whether an alternative text says something rather than naming a file.

    >>> is_sentence("../_images/plot.svg"), is_sentence("Accuracy falls from 1 to 0.2 as N grows.")
    (False, True)
    """
    return len(alt.strip()) >= SENTENCE and " " in alt.strip()


def inline_figures(
    body: str, read: Callable[[str], str | None], complain: Callable[[str], None]
) -> str:
    """Replace each ``<img>`` of an SVG in a page's body by the SVG itself.

    ``read(src)`` gives the SVG's text, or None for an image to leave alone; ``complain(src)`` is
    called for an image whose alternative text is not a sentence.
    """
    count = 0

    def replace(match: re.Match) -> str:
        nonlocal count
        attributes = {k: html.unescape(v) for k, v in _ATTRIBUTE.findall(match[0])}
        src, alt = attributes.get("src", ""), attributes.get("alt", "")
        if not is_sentence(alt):
            complain(src)
        text = read(src) if src.endswith(".svg") else None
        if text is None:
            return match[0]
        count += 1
        return inline_svg(text, f"figure-{count}", alt)

    return _IMG.sub(replace, body)
