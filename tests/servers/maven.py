"""What Maven Central has, into a folder."""

import shutil
from pathlib import Path

from tests.servers.frame import download, program

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId><artifactId>tests</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>"""
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.11.0"


def unpacked(folder: Path, dependency: str, *, includes: str, excludes: str = "") -> None:
    """Unpack those files of one archive, `dependency` as a POM has it, into `folder`.

    Nothing else stays: neither the archive nor what Maven needed for itself.
    Raises: MissingServerError.
    """
    pom = folder / "pom.xml"
    pom.write_text(_POM.format(dependencies=f"<dependency>{dependency}</dependency>"))
    repository = folder / ".m2"
    download(
        [
            program("mvn", install="install maven"),
            *("-q", "-B", "-f", str(pom), f"-Dmaven.repo.local={repository}"),
            f"{_PLUGIN}:unpack-dependencies",
            *(f"-DoutputDirectory={folder}", f"-DmarkersDirectory={repository}"),
            *(f"-Dmdep.unpack.includes={includes}", f"-Dmdep.unpack.excludes={excludes}"),
        ],
        within_s=1_800,
    )
    shutil.rmtree(repository)
    pom.unlink()
