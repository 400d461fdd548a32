import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[4]
CLIENTS = {"AIOKafkaConsumer", "AIOKafkaProducer", "AIOKafkaAdminClient"}


def made_in(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def test_every_client_of_the_broker_is_made_in_one_place() -> None:
    """Elsewhere one might lack what the broker wants to be shown, or `acks`."""
    makers = {
        str(module.relative_to(ROOT))
        for folder in ("libs", "services")
        for module in (ROOT / folder).rglob("*.py")
        if CLIENTS & set(made_in(module))
    }
    assert makers == {"libs/eventbus/connection.py"}
