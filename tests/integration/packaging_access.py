"""The built wheel, and environments away from the checkout that have it installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cli_access import Said

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("stepacc_core", "stepacc_dagster")
CONSTRAINTS = REPOSITORY / "constraints.txt"


def run(*command: str | Path, cwd: str | Path = "/", **environment: str) -> Said:
    """Run a program that sees nothing of this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, check=False, timeout=900
    )
    return Said(done.returncode, done.stdout, done.stderr)


def build_wheel(folder: Path) -> Path:
    """Build the wheel from a copy of the sources, so that no earlier build can add to it."""
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, folder)
    for package in PACKAGES:
        shutil.copytree(REPOSITORY / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tests").mkdir()
    (folder / "tests" / "__init__.py").touch()
    built = run(sys.executable, "-m", "build", "--wheel", "--outdir", folder / "dist", folder)
    assert built.code == 0, built.err
    [path] = (folder / "dist").iterdir()
    return path


class Environment:
    """A virtual environment with the wheel in it."""

    def __init__(self, folder: Path, wheel: Path, extras: str = "") -> None:
        self.bin = folder / "bin"
        made = run(sys.executable, "-m", "venv", folder)
        assert made.code == 0, made.err
        installed = run(
            self.bin / "python", "-m", "pip", "install", "--no-compile", "--constraint", CONSTRAINTS, f"{wheel}{extras}"
        )
        assert installed.code == 0, installed.err

    def stepacc(self, *arguments: str | Path, **environment: str) -> Said:
        """Run the installed command."""
        return run(self.bin / "stepacc", *arguments, **environment)
