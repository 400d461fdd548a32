"""A document goes in and a cited answer comes out, all from the images of the Compose file."""

import os
from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.stack import Site, wait_until
from tests.images.base import ensure_base_image
from tests.images.compose import PLATFORM, PROJECT, Compose
from tests.images.engine import Engine
from tests.images.hosts import servers, socket_files
from tests.ports import free_port
from tests.servers.frame import MissingServerError

ONCE = ("migrate", "topics", "first-key")
POLICY = "# Travel\n\nTrips above 2000 euro are approved by the finance director.\n"


class Platform(Site):
    """The running project: one published port, and the key of the environment file."""

    def __init__(self, compose: Compose, port: int) -> None:
        super().__init__(f"http://127.0.0.1:{port}", lambda: compose.secrets["SLUICE_API_KEY"])
        self.compose = compose

    def is_ready(self) -> bool:
        try:
            with self.client() as client:
                return client.get("/ready").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def workers(self, service: str) -> int:
        """How many processes of it say that they work."""
        with self.client() as client:
            lag = client.get("/v1/admin/lag").json()
        return next((each["ready"] for each in lag["workers"] if each["service"] == service), 0)

    def wait_healthy(self, containers: set[str]) -> None:
        def are_healthy() -> bool:
            health = self.compose.health()
            return all(health.get(name) == "healthy" for name in containers)

        try:
            wait_until(are_healthy, "every container healthy")
            wait_until(self.is_ready, "ready, through the published port")
        except AssertionError as exc:
            raise AssertionError(f"{exc}; {self.compose.health()}; {self.compose.logs()}") from exc


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    try:
        engine = Engine()
        ensure_base_image(engine)
    except MissingServerError as exc:
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up(f"podman is missing: {exc}")
    with engine.serving():
        yield engine


@pytest.fixture(scope="module")
def platform(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("images")
    port = free_port()
    compose = Compose(engine, folder, port)
    compose.down()  # what a run left that was killed
    compose.run("build", "--quiet", within_s=1800)
    with servers(folder, compose.secrets) as ports, socket_files(folder / "hosts", ports):
        try:
            compose.run("up", "--detach", "--no-build")
            yield Platform(compose, port)
        finally:
            compose.down()


def test_every_container_gets_healthy_from_the_images(platform: Platform) -> None:
    platform.wait_healthy({_container(name) for name in PLATFORM})
    health = platform.compose.health()
    assert {health[_container(name)] for name in ONCE} == {"exited 0"}


def test_a_document_goes_in_and_a_cited_answer_comes_out(platform: Platform) -> None:
    document = platform.upload("travel.md", POLICY)
    assert document["state"] == "indexed", document
    turn = platform.ask("Who approves trips above 2000 euro?")
    assert "finance director" in turn["answer"]
    (citation, *_) = turn["citations"]
    assert citation["document_id"] == document["id"]
    assert citation["quote"] in POLICY


def test_executors_scale_by_one_option(platform: Platform) -> None:
    platform.compose.run("up", "--detach", "--no-build", "--no-recreate", "--scale", "executor=2")
    platform.wait_healthy({_container("executor"), _container("executor", 2)})
    wait_until(lambda: platform.workers("executor") == 2, "two executors at work")
    assert "finance director" in platform.ask("Who approves trips above 2000 euro?")["answer"]


def test_down_leaves_nothing(platform: Platform) -> None:
    platform.compose.down()
    assert platform.compose.left() == {"containers": [], "networks": [], "volumes": []}


def _container(service: str, number: int = 1) -> str:
    return f"{PROJECT}-{service}-{number}"
