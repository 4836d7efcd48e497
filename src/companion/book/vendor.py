"""Fetch the few browser files that the pages load, with ``npm pack`` and pinned checksums.

``npm pack`` downloads a package's archive and nothing it depends on, so there is no
``node_modules``; seven files are kept.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .steps import StepFailed


@dataclass(frozen=True)
class Package:
    """A pinned npm package and the members of its archive to keep under ``folder``."""

    spec: str
    integrity: str  # as in package-lock.json
    folder: str
    members: tuple[str, ...]


PACKAGES = (
    Package(
        "mathjax@3.2.2",
        "sha512-Bt+SSVU8eBG27zChVewOicYs7Xsdt40qm4+UpHyX7k0/O9NliPc+x77k1/FEsPsjKPZGJvtRZM1vO+geW0OhGw==",
        "mathjax",
        ("es5/tex-svg-full.js", "LICENSE"),
    ),
    Package(
        "requirejs@2.3.8",
        "sha512-7/cTSLOdYkNBNJcDMWf+luFvMriVm7eYxp4BcFCsAX0wF421Vyce5SXP17c+Jd5otXKGNehIonFlyQXSowL6Mw==",
        "requirejs",
        ("require.js",),
    ),
    Package(
        "@jupyter-widgets/html-manager@1.0.15",
        "sha512-5thBIV6ymNgmPVOHvzx+gGy8ZSKmSazhtGw4/c4xJDVzRhG9PTeQsRjF3FUTopvFi//SABeNz1yp47bCrJ3CQA==",
        "html-manager",
        (
            "dist/embed-amd.js",
            "dist/1551f4f60c37af51121f.woff2",  # the icon fonts that its style sheet asks for
            "dist/d878b0a6a1144760244f.woff2",
            "dist/7a3337626410ca2f4071.woff2",
        ),
    ),
)


def integrity(data: bytes) -> str:
    """Subresource-integrity string of some bytes.

    >>> integrity(b"")[:20]
    'sha512-z4PhNX7vuL3xV'
    """
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


def unpack(package: Package, archive: Path, destination: Path) -> None:
    """Check an archive against its pin and copy the wanted members."""
    got = integrity(archive.read_bytes())
    if got != package.integrity:
        raise StepFailed(f"{package.spec}: got {got}, expected {package.integrity}")
    with tarfile.open(archive) as tar:
        for member in package.members:
            target = destination / package.folder / member
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tar.extractfile(f"package/{member}").read())


def fetch(destination: Path) -> str:
    """Bring all packages to ``destination`` unless they are there; return what happened."""
    stamp, want = destination / "stamp.txt", repr(PACKAGES)
    if stamp.exists() and stamp.read_text(encoding="utf8") == want:
        return "up to date"
    if shutil.which("npm") is None:
        raise StepFailed("got no npm on PATH, expected one (it comes with Node.js)")
    shutil.rmtree(destination, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        specs = [package.spec for package in PACKAGES]
        command = ["npm", "pack", "--json", "--pack-destination", folder, *specs]
        packed = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        if packed.returncode != 0:
            raise StepFailed(f"{' '.join(command)}\n{packed.stderr}")
        for package, entry in zip(PACKAGES, json.loads(packed.stdout), strict=True):
            unpack(package, Path(folder, entry["filename"]), destination)
    stamp.write_text(want, encoding="utf8")
    return f"{len(PACKAGES)} packages fetched and checked"
