"""The image that `deploy/Dockerfile` begins with: pulled, or else made from Debian's packages."""

import re
import shutil
import subprocess
from pathlib import Path

from tests.deploy.repository import ROOT
from tests.images.engine import INSTALL, Engine
from tests.servers.frame import MissingServerError, download, program

_SUITE = "bookworm"
_SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
_PYTHON = """\
FROM localhost/debian:bookworm-slim
ENV LANG=C.UTF-8
RUN apt-get update \\
 && apt-get install -y --no-install-recommends python3 python3-venv \\
 && python3 -m venv /usr/local \\
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
CMD ["python3"]
"""


def base_image() -> str:
    """Its name, as the Dockerfile gives it."""
    (name,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)", _dockerfile(), re.MULTILINE)
    return f"docker.io/library/{name}"


def ensure_base_image(engine: Engine) -> None:
    """Raises: MissingServerError when it can neither be pulled nor made."""
    name = base_image()
    if engine.has_image(name):
        return
    try:
        engine.run("pull", "--quiet", name, within_s=300)
    except (AssertionError, subprocess.TimeoutExpired):
        _make(engine, name)


def _make(engine: Engine, name: str) -> None:
    root = engine.folder / "rootfs"
    shutil.rmtree(root, ignore_errors=True)
    try:
        _debootstrap(root)
        tar = engine.folder / "rootfs.tar"
        download(["tar", "-C", str(root), "--numeric-owner", "-cf", str(tar), "."])
        path = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        engine.run("import", "-q", "-c", path, str(tar), "localhost/debian:bookworm-slim")
        tar.unlink()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    build = ("build", "--quiet", "--pull=never", "--tag", name, "--file", "-")
    engine.run(*build, str(_empty(engine)), stdin=_PYTHON)


def _empty(engine: Engine) -> Path:
    """A build context with nothing in it."""
    folder = engine.folder / "empty"
    folder.mkdir(exist_ok=True)
    return folder


def _debootstrap(root: Path) -> None:
    """A minimal Debian that knows this machine's certificates, mirrors and package index."""
    try:
        (mirror, *_) = re.findall(r"^URIs: *(\S+)", _SOURCES.read_text(), re.MULTILINE)
    except (OSError, ValueError) as exc:
        raise MissingServerError(f"no Debian mirror in {_SOURCES}: {exc}") from exc
    make = program("debootstrap", install=INSTALL)
    include = "--include=ca-certificates,netbase,tzdata"
    download([make, "--variant=minbase", include, _SUITE, str(root), mirror])
    for package in (root / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()
    shutil.rmtree(root / "var/lib/apt/lists", ignore_errors=True)
    for kept in (
        Path("/etc/ssl/certs/ca-certificates.crt"),
        Path("/etc/pip.conf"),
        _SOURCES,
        *Path("/etc/apt/apt.conf.d").glob("99*"),
    ):
        if kept.exists():
            shutil.copy(kept, root / kept.relative_to("/"))
    (root / "etc/apt/sources.list").write_text("")


def _dockerfile() -> str:
    return (ROOT / "deploy" / "Dockerfile").read_text()
