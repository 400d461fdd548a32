"""Apache Kafka (KRaft), as Maven serves it."""

import contextlib
import shutil
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.ports import free_port
from tests.servers.certificates import Authority
from tests.servers.frame import Server, cached, download, launched, program

VERSION = "4.3.1"
USER, PASSWORD = "sluice", "pa55-of-the-test"  # what the secured listener lets in

INSTALL_JAVA = "install a Java runtime, 17 or newer (Debian: default-jre-headless)"
INSTALL_MAVEN = "install Maven (Debian: maven); it downloads Kafka"

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies>
<dependency>
<groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
</dependency>
<dependency>
<groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version>
</dependency>
</dependencies></project>
"""
_CLUSTER_ID = "c2x1aWNlLXRlc3RzAAAAAA"
_SCRAM = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
# Who asks: metadata of no topic, version 4. The answer lists the brokers that work.
_ASK_FOR_BROKERS = struct.pack(">hhih5si?", 3, 4, 1, 5, b"tests", 0, False)


class Kafka(Server):
    """One node, broker and controller in one. It keeps its log when it is started again.

    Args:
        node: Its number in the cluster.
        voters: Every node's controller port by its number; None: this one is alone.
        proxied_at: The port of a proxy in front of `inner_port`. Clients that come through the
            proxy are told to come back through it, at `proxied_host`.
        secured: Also listen on `secure_port`, with TLS and passwords.
        optimised: As fast as it can be, for benchmarks; else it is quick to start.
    """

    name = "Kafka"
    ready_within_s = 120.0

    def __init__(
        self,
        folder: Path,
        *,
        node: int = 1,
        voters: Mapping[int, int] | None = None,
        proxied_at: int | None = None,
        proxied_host: str = "127.0.0.1",
        secured: bool = False,
        heap_mb: int = 384,
        optimised: bool = False,
    ) -> None:
        super().__init__(folder)
        self.node = node
        self._voters = voters or {node: free_port()}
        self._java = partial(_java, heap_mb, optimised=optimised)
        self.proxied_at = proxied_at
        self._proxied_host = proxied_host
        self.inner_port = free_port()
        self.secure_port = free_port()
        self._secured = secured

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def secure_bootstrap(self) -> str:
        return f"127.0.0.1:{self.secure_port}"

    @property
    def ca_file(self) -> Path:
        """The authority that signed the certificate of the secured listener."""
        return self.folder / "ca.pem"

    def provide(self) -> None:
        shutil.copytree(cached(f"kafka-{VERSION}-node-{self.node}", self._format), self._data)
        if self._secured:
            authority = Authority.made_in(self.folder)
            authority.sign("127.0.0.1", self._key_store)
        self._write_settings(self.folder, self._settings())

    def command(self) -> Sequence[str | Path]:
        return [*self._java(), "kafka.Kafka", self.folder / "server.properties"]

    def is_ready(self) -> bool:
        return self.brokers_seen() >= len(self._voters)

    def brokers_seen(self) -> int:
        """How many brokers of its cluster it knows to be working. Raises: OSError."""
        with socket.create_connection(("127.0.0.1", self.port), 1.0) as connection:
            connection.settimeout(2.0)
            connection.sendall(struct.pack(">i", len(_ASK_FOR_BROKERS)) + _ASK_FOR_BROKERS)
            answer = connection.recv(65536)
        return int(struct.unpack_from(">i", answer, 12)[0]) if len(answer) >= 16 else 0

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _key_store(self) -> Path:
        return self.folder / "server.pem"

    def _settings(self) -> dict[str, object]:
        here = "127.0.0.1"
        listeners: dict[str, tuple[int, str | None]] = {
            "PLAIN": (self.port, f"{here}:{self.port}"),
            "CONTROLLER": (self._voters[self.node], None),
        }
        if self.proxied_at is not None:
            listeners["PROXIED"] = (self.inner_port, f"{self._proxied_host}:{self.proxied_at}")
        if self._secured:
            listeners["SECURED"] = (self.secure_port, f"{here}:{self.secure_port}")
        copies = min(3, len(self._voters))
        return {
            "process.roles": "broker,controller",
            "node.id": self.node,
            "log.dirs": self._data,
            "controller.quorum.voters": ",".join(
                f"{node}@127.0.0.1:{port}" for node, port in self._voters.items()
            ),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAIN",
            "listener.security.protocol.map": (
                "PLAIN:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT,SECURED:SASL_SSL"
            ),
            "listeners": ",".join(
                f"{name}://{here}:{port}" for name, (port, _) in listeners.items()
            ),
            "advertised.listeners": ",".join(
                f"{name}://{told}" for name, (_, told) in listeners.items() if told
            ),
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            "offsets.topic.num.partitions": 3,
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": max(1, copies - 1),
            "min.insync.replicas": max(1, copies - 1),
            # Quick to see that a node is gone, so that tests are quick.
            "broker.heartbeat.interval.ms": 500,
            "broker.session.timeout.ms": 3000,
            "replica.lag.time.max.ms": 3000,
            "controller.quorum.election.timeout.ms": 500,
            "controller.quorum.fetch.timeout.ms": 1500,
            **(self._security() if self._secured else {}),
        }

    def _security(self) -> dict[str, object]:
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        prefix = "listener.name.secured"
        return {
            f"{prefix}.ssl.keystore.type": "PEM",
            f"{prefix}.ssl.keystore.location": self._key_store,
            f"{prefix}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            f"{prefix}.plain.sasl.jaas.config": f'{plain} user_{USER}="{PASSWORD}";',
            f"{prefix}.scram-sha-512.sasl.jaas.config": scram,
        }

    def _format(self, folder: Path) -> None:
        """What a node starts from; the user of the secured listener is in it."""
        scratch = {
            "process.roles": "broker,controller",
            "node.id": self.node,
            "log.dirs": folder,
            "controller.quorum.voters": f"{self.node}@127.0.0.1:1",
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1",
        }
        self._write_settings(folder, scratch)
        settings = folder / "server.properties"
        tool = [*self._java(), "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID]
        download([*map(str, tool), "-c", str(settings), "--add-scram", _SCRAM])
        settings.unlink()

    def _write_settings(self, folder: Path, settings: Mapping[str, object]) -> None:
        lines = (f"{name}={value}\n" for name, value in settings.items())
        (folder / "server.properties").write_text("".join(lines))


@contextlib.contextmanager
def kafka_cluster(folder: Path) -> Iterator[dict[int, Kafka]]:
    """Three nodes by their numbers, all ready; topics may have a replica on each."""
    voters = {node: free_port() for node in (1, 2, 3)}
    servers = {
        node: Kafka(folder / f"node-{node}", node=node, voters=voters, heap_mb=256)
        for node in voters
    }
    with contextlib.ExitStack() as stack:
        for server in servers.values():
            stack.enter_context(launched(server))
        for server in servers.values():
            server.wait_ready()
        yield servers


def _java(heap_mb: int, *, optimised: bool) -> list[str | Path]:
    jars = cached(f"kafka-{VERSION}", _fetch)
    quick = () if optimised else ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    return [
        *(program("java", install=INSTALL_JAVA), f"-Xmx{heap_mb}m", *quick),
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        *("-cp", f"{jars}/*"),
    ]


def _fetch(folder: Path) -> None:
    pom = folder / "pom.xml"
    pom.write_text(_POM)
    download(
        [
            *(program("mvn", install=INSTALL_MAVEN), "-q", "-B", "-f", str(pom)),
            *("dependency:copy-dependencies", f"-DoutputDirectory={folder}"),
        ]
    )
