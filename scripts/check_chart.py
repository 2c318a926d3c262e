"""Check deploy/kubernetes/values.yaml against Dagster's Helm chart, as `helm` does, and for words it does not know.

    helm pull dagster/dagster --version 1.13.27 --untar
    python scripts/check_chart.py dagster

Nothing of the chart is kept in this repository. Prints what is wrong, a line each, and exits with 1; or says that
nothing is.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import yaml

VALUES = Path(__file__).parents[1] / "deploy" / "kubernetes" / "values.yaml"


def merged(default: Any, given: Any) -> Any:
    """Return a value over its default, as `helm` merges them: mappings by key, all else is replaced."""
    if isinstance(default, Mapping) and isinstance(given, Mapping):
        both = {name: merged(default[name], value) if name in default else value for name, value in given.items()}
        return {**default, **both}
    return given


def unknown(default: Any, given: Any, read: str, path: str = "") -> Iterator[str]:
    """Yield the settings that neither the chart's own values have nor a template reads, a word misspelt among them.

    Lists, and mappings that are empty in the chart's values, are left to the schema.
    """
    if isinstance(default, Mapping) and isinstance(given, Mapping) and default:
        for name, value in given.items():
            if name in default:
                yield from unknown(default[name], value, read, f"{path}{name}.")
            elif not re.search(rf"\.{re.escape(name)}\b", read):
                yield f"{path}{name}"


def main(folder: str) -> int:
    """Check, print and return the exit code."""
    chart = Path(folder)
    defaults = yaml.safe_load((chart / "values.yaml").read_text())
    given = yaml.safe_load(VALUES.read_text())
    templates = "".join(path.read_text() for path in sorted(chart.rglob("templates/**/*")) if path.is_file())
    validator = jsonschema.Draft202012Validator(json.loads((chart / "values.schema.json").read_text()))
    errors = validator.iter_errors(merged(defaults, given))
    wrong = [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in errors]
    wrong += [f"{name}: nothing in the chart reads it" for name in unknown(defaults, given, templates)]
    print("\n".join(wrong) or f"{VALUES.name} fits the chart.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
