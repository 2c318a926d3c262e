"""Run a soak and say what came of it: `python -m tests.soak [--seconds N] [--seed N]`."""

import argparse
import os
import sys
from dataclasses import replace

from tests.soak.report import Settings
from tests.soak.soak import soak


def main() -> int:
    """Run it; return 1 where something is not as it should be."""
    default = Settings()
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Disturb stepacc dev, and compare.")
    parser.add_argument("--seconds", type=float, default=default.seconds, help="how long (default: %(default)s)")
    parser.add_argument(
        "--seed", type=int, default=default.seed, help="what chance follows from (default: %(default)s)"
    )
    given = parser.parse_args()
    for name in list(os.environ):
        if name.startswith(("STEPACC_", "DAGSTER_", "PG")) and name != "STEPACC_PG_BIN":
            del os.environ[name]
    os.environ["STEPACC_REDACTION_KEY"] = "the redaction key of the soak"
    report = soak(replace(default, seconds=given.seconds, seed=given.seed))
    print(report)  # noqa: T201 (a script)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
