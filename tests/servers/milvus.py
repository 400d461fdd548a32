"""Milvus standalone, as PyPI has it: with etcd and a message queue in the same process."""

import lzma
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import yaml

from tests.ports import free_port
from tests.servers.frame import Server, cached, download, program

VERSION = "2.3.5"
TOKEN = "root:Milvus"  # what a server with `authorization` begins with
_HASTE = {"queryCoord": {"checkInterval": 100, "distPullInterval": 50}}  # ms, to load sooner
_TICK = {"timeTickInterval": 20}  # ms, which every strong read waits for; by default 200


class Milvus(Server):
    """Ready within ten seconds; a collection of a killed one is loaded again some seconds later.

    Every port is its own, so that several can run. Its own timers are short: what a dead process
    held is free after `lease_s`.
    """

    name = "Milvus"
    ready_within_s = 120.0
    stops_within_s = 2.0  # it takes its time, and keeps what it acknowledged when it is killed

    def __init__(self, folder: Path, *, lease_s: int = 20, authorization: bool = False) -> None:
        """`authorization`: callers need the TOKEN."""
        super().__init__(folder)
        self._lease_s = lease_s
        self._authorization = authorization
        self._health_port = free_port()

    @cached_property
    def _programs(self) -> Path:
        return cached(f"milvus-{VERSION}", _unpack)

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def provide(self) -> None:
        _ = self._programs
        configs = self.folder / "configs"
        configs.mkdir()
        (configs / "milvus.yaml").write_text(yaml.safe_dump(self._settings()))
        (configs / "etcd.yaml").write_text(yaml.safe_dump(self._etcd()))
        (configs / "glog.conf").write_text("--logtostderr=true\n--minloglevel=1\n")  # must be there

    def command(self) -> Sequence[str | Path]:
        return [self._programs / "milvus", "run", "standalone"]

    def environment(self) -> Mapping[str, str]:
        return {
            "LD_LIBRARY_PATH": str(self._programs),
            "DEPLOY_MODE": "STANDALONE",
            "METRICS_PORT": str(self._health_port),
            "MILVUSCONF": str(self.folder / "configs"),
            "MILVUS_RUN_DIR": str(self.folder / "run"),
        }

    def is_ready(self) -> bool:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://127.0.0.1:{self._health_port}/healthz", timeout=3.0) as said:
                return b"OK" in said.read()
        except urllib.error.HTTPError:
            return False

    @cached_property
    def _etcd_url(self) -> str:
        return f"http://127.0.0.1:{free_port()}"

    def _etcd(self) -> Mapping[str, object]:
        peer = f"http://127.0.0.1:{free_port()}"
        return {
            "name": "default",
            "data-dir": str(self.folder / "etcd"),
            "listen-client-urls": self._etcd_url,
            "advertise-client-urls": self._etcd_url,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
        }

    def _settings(self) -> Mapping[str, object]:
        def listening() -> dict[str, object]:
            return {"ip": "127.0.0.1", "port": free_port()}

        parts = ("rootCoord", "queryCoord", "queryNode", "indexNode", "dataCoord", "dataNode")
        return {
            **{part: {**listening(), **_HASTE.get(part, {})} for part in parts},
            "proxy": {"ip": "127.0.0.1", "port": self.port, "internalPort": free_port(), **_TICK},
            "etcd": {
                "endpoints": self._etcd_url.removeprefix("http://"),
                "use": {"embed": True},
                "config": {"path": str(self.folder / "configs" / "etcd.yaml")},
                "data": {"dir": str(self.folder / "etcd")},
            },
            "mq": {"type": "rocksmq"},
            "rocksmq": {"path": str(self.folder / "rocksmq")},
            "localStorage": {"path": str(self.folder / "data")},
            "log": {"level": "warn", "stdout": True},
            "common": {
                "storageType": "local",
                "session": {"ttl": self._lease_s},
                "gracefulStopTimeout": 5,
                "security": {"authorizationEnabled": self._authorization},
            },
        }


def _unpack(folder: Path) -> None:
    wheel = folder / "wheel"
    uv = program("uv", str(Path(sys.executable).with_name("uv")), install="run `make setup`")
    download(
        [
            *(uv, "pip", "install", "--quiet", "--no-deps", "--python", sys.executable),
            *("--target", str(wheel), f"milvus=={VERSION}"),
        ]
    )
    for packed in (wheel / "milvus" / "data" / "bin").glob("*.lzma"):
        program_file = folder / packed.stem
        with lzma.open(packed) as source, program_file.open("wb") as target:
            shutil.copyfileobj(source, target)
        program_file.chmod(0o755)
    shutil.rmtree(wheel)
