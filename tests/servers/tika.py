"""The parsers of Apache Tika from Maven, behind tika-server's interface (`TikaFront.java`)."""

import http.client
import os
from collections.abc import Sequence
from pathlib import Path

from tests.servers.frame import Server, cached, download, program
from tests.servers.java import java_home

VERSION = "3.3.1"
JAVA = 17

_FRONT = Path(__file__).parent / "TikaFront.java"
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>tika</artifactId><version>1</version>
<dependencies>
<dependency>
<groupId>org.apache.tika</groupId><artifactId>tika-core</artifactId><version>{VERSION}</version>
</dependency>
<dependency>
<groupId>org.apache.tika</groupId><artifactId>tika-parsers-standard-package</artifactId>
<version>{VERSION}</version><type>pom</type>
<exclusions><exclusion>
<groupId>com.github.junrar</groupId><artifactId>junrar</artifactId>
</exclusion></exclusions>
</dependency>
<dependency>
<groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>2.0.17</version>
</dependency>
</dependencies></project>
"""


class TikaServer(Server):
    """RAR archives apart, it reads what a Tika server reads."""

    name = "Tika"
    ready_within_s = 120.0

    def provide(self) -> None:
        self._java = java_home(JAVA) / "bin"
        self._jars = cached(f"tika-{VERSION}", _fetch)

    def command(self) -> Sequence[str | Path]:
        options = ["-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
        paths = ["-cp", f"{self._jars / 'lib'}{os.sep}*"]
        return [self._java / "java", *options, *paths, _FRONT, str(self.port)]

    def is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2.0)
        try:
            connection.request("GET", "/version")
            return connection.getresponse().status == 200
        finally:
            connection.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def _fetch(folder: Path) -> None:
    pom = folder / "pom.xml"
    pom.write_text(_POM)
    maven = program("mvn", install="install Maven (Debian: maven); it downloads Tika")
    goal = "dependency:copy-dependencies"
    download([maven, "-q", "-B", "-f", str(pom), goal, f"-DoutputDirectory={folder / 'lib'}"])
