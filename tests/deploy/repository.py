"""What deployments say and what the code says, as values to compare."""

import importlib
import pkgutil
from pathlib import Path
from typing import Any

import yaml
from pydantic_settings import BaseSettings

import services
from libs.service.settings import PlatformSettings

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "sluice"
OBSERVABILITY = ROOT / "deploy" / "observability"


def variables_read() -> frozenset[str]:
    """Every environment variable that some process's settings read."""
    for module in pkgutil.walk_packages(services.__path__, "services."):
        if module.name.endswith(".settings"):
            importlib.import_module(module.name)
    return frozenset(name for kind in _kinds(PlatformSettings) for name in _variables(kind))


def _kinds(kind: type[BaseSettings]) -> list[type[BaseSettings]]:
    return [kind, *(each for below in kind.__subclasses__() for each in _kinds(below))]


def _variables(kind: type[BaseSettings]) -> list[str]:
    return [str(field.validation_alias) for field in kind.model_fields.values()]


def service_modules() -> frozenset[str]:
    """Every process there is to deploy, as `python -m services.<module>` starts it."""
    folder = ROOT / "services"
    found = {
        ".".join(main.parent.relative_to(folder).parts) for main in folder.rglob("__main__.py")
    }
    return frozenset(found - {"local", "cli"})


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())
