"""Runs every benchmark of this folder, each in a process of its own.

A benchmark is a module with a function `main` that prints one table.
"""

import importlib
import pkgutil
import subprocess
import sys

from tests import bench


def main() -> int:
    failed = []
    for module in pkgutil.iter_modules(bench.__path__, "tests.bench."):
        if module.name.endswith("__main__"):
            continue
        if not hasattr(importlib.import_module(module.name), "main"):
            continue
        print(f"\n## {module.name}", flush=True)
        if subprocess.run([sys.executable, "-m", module.name], check=False).returncode:
            failed.append(module.name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
