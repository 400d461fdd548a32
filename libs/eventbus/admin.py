"""Creating topics. A broker's auto-created topics have the wrong shape, so this runs first."""

import asyncio
from collections.abc import Iterable, Sequence

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code
from tenacity import AsyncRetrying, retry_if_exception_type, wait_exponential_jitter

from libs.contracts import TopicSpec, topic_specs
from libs.eventbus.connection import KafkaConnection
from libs.eventbus.reaching import not_reached
from libs.kernel import PermanentError

_TRY_TIMEOUT_MS = 5_000


class _NotYet(Exception):  # noqa: N818 - a state of the cluster, caught here, not an error
    """The cluster does not show every topic so far."""


async def apply_topics(
    kafka: KafkaConnection,
    specs: Sequence[TopicSpec] | None = None,
    *,
    replication_factor: int = 1,
    timeout_s: float = 60.0,
) -> list[str]:
    """Create the topics that are missing and check the partitions of those that exist.

    Waits, with backoff, for a broker that isn't there yet. Safe to repeat and to run in several
    processes at once. `specs` is by default everything that the topic files ask for.

    Returns:
        The names of the topics this call created.

    Raises:
        PermanentError: `topic-partitions-differ` or `topic-refused`, naming the topic.
        TransientError: no broker, or not all topics there, within `timeout_s`.
    """
    wanted = {spec.name: spec for spec in (topic_specs() if specs is None else specs)}
    created: list[str] = []
    retrying = AsyncRetrying(
        wait=wait_exponential_jitter(multiplier=0.05, max=2.0, jitter=0.1),
        retry=retry_if_exception_type((KafkaError, OSError, TimeoutError, _NotYet)),
    )
    last = "no answer"
    try:
        async with asyncio.timeout(timeout_s):
            async for attempt in retrying:
                with attempt:
                    try:
                        await _converge(kafka, wanted, replication_factor, created)
                    except (KafkaError, OSError, TimeoutError, _NotYet) as exc:
                        last = f"{type(exc).__name__}: {exc}"
                        raise
    except TimeoutError as exc:
        message = f"topics at {kafka.bootstrap} not ready within {timeout_s:g} s; last: {last}"
        raise await not_reached(kafka, message) from exc
    return created


async def _converge(
    kafka: KafkaConnection,
    wanted: dict[str, TopicSpec],
    replication_factor: int,
    created: list[str],
) -> None:
    """One try: create what is missing, then look whether the cluster shows it."""
    admin = kafka.admin(request_timeout_ms=_TRY_TIMEOUT_MS)
    try:
        await admin.start()
        missing = _missing(wanted.values(), await _partitions(admin))
        if not missing:
            return
        created.extend(await _create(admin, missing, replication_factor))
        if left := _missing(wanted.values(), await _partitions(admin)):
            raise _NotYet(f"still missing: {', '.join(spec.name for spec in left)}")
    finally:
        await admin.close()


async def _partitions(admin: AIOKafkaAdminClient) -> dict[str, int]:
    # Asking for named topics would make some brokers create them, so this asks for all.
    return {t["topic"]: len(t["partitions"]) for t in await admin.describe_topics()}


def _missing(wanted: Iterable[TopicSpec], found: dict[str, int]) -> list[TopicSpec]:
    for spec in wanted:
        if found.get(spec.name, spec.partitions) != spec.partitions:
            raise PermanentError(
                "topic-partitions-differ",
                f"topic {spec.name} has {found[spec.name]} partitions, wanted {spec.partitions}: "
                "delete it or change its topic file",
            )
    return [spec for spec in wanted if spec.name not in found]


def topic_configs(spec: TopicSpec, replication_factor: int) -> dict[str, str]:
    """Of a new topic. One copy may be away, and what is acknowledged is still on two of three."""
    configs = {"retention.ms": str(spec.retention_ms)}
    if replication_factor > 1:
        configs["min.insync.replicas"] = str(replication_factor - 1)
    return configs


async def _create(
    admin: AIOKafkaAdminClient, missing: list[TopicSpec], replication_factor: int
) -> list[str]:
    new = [
        NewTopic(
            spec.name,
            spec.partitions,
            replication_factor,
            topic_configs=topic_configs(spec, replication_factor),
        )
        for spec in missing
    ]
    response = await admin.create_topics(new)
    created = []
    for name, code, *message in response.topic_errors:
        error = for_code(code)
        if code == 0:
            created.append(name)
        elif error is not TopicAlreadyExistsError and not error.retriable:
            raise PermanentError("topic-refused", f"topic {name}: {error.__name__} {message}")
    return created
