"""What must stay true of the packages whatever is added."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import stepacc_core
import stepacc_dagster

ROOT = Path(__file__).parents[1]
CORE = sorted((ROOT / "stepacc_core").rglob("*.py"))
ALLOWED_IN_CORE = {"stepacc_core", "pydantic", "pydantic_core", "yaml"}
WHERE_NEEDED = {
    "detect_secrets",
    "numpy",
    "opentelemetry",
    "phonenumbers",
    "pytest",
    "re2",
    "regex",
    "rich",
    "scipy",
    "stdnum",
}
"""What modules of the core import for a purpose of their own, and never with the public names."""


def _imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).partition(".")[0])
    return found


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_core_imports_libraries_alone(path: Path) -> None:
    assert _imported(path) - set(sys.stdlib_module_names) - ALLOWED_IN_CORE - WHERE_NEEDED == set()


def test_readers_never_know_metrics_and_metrics_never_know_wire_formats() -> None:
    modules = {path: path.read_text() for path in CORE}
    readers = [p for p in CORE if p.parent.name in ("conventions", "cleaning") or p.name in ("otlp.py", "reading.py")]
    metrics = [p for p in CORE if p.parent.name in ("metrics", "alignment")]

    assert readers
    assert metrics
    assert [p.name for p in readers if "stepacc_core.metrics" in modules[p]] == []
    assert [
        p.name for p in metrics if "stepacc_core.otlp" in modules[p] or "stepacc_core.conventions" in modules[p]
    ] == []


def test_importing_the_core_loads_no_framework() -> None:
    code = "import sys; from stepacc_core import *; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert "pydantic" in loaded
    assert {"dagster", "sqlalchemy", "stepacc_dagster", "click", *WHERE_NEEDED} & set(loaded) == set()


def test_importing_the_command_line_does_not_wait_for_dagster() -> None:
    code = "import sys, stepacc_dagster.cli; print('dagster' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    assert printed == "False"


@pytest.mark.parametrize("package", [stepacc_core, stepacc_dagster], ids=lambda package: package.__name__)
def test_the_public_names_are_sorted_and_exist(package: object) -> None:
    names = list(package.__all__)  # type: ignore[attr-defined]

    assert names == sorted(names)
    assert [name for name in names if not hasattr(package, name)] == []
