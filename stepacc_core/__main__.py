"""`python -m stepacc_core`: the alignment of two lists of steps as a picture, or the worked example of the metric."""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from stepacc_core.errors import ConfigError
from stepacc_core.metrics.step_accuracy import step_accuracy
from stepacc_core.metrics.step_accuracy_config import ScoringMethod
from stepacc_core.model import Result, Step
from stepacc_core.picture import Picture, picture
from stepacc_core.step_lists import parse_expected, parse_observed

_EPILOG = """\
A list is names between commas. Expected steps in brackets may come in any
order; an observed step that is an agent's is written agent:NAME, since agents
are compared exactly, and tools without regard to case, - and _. Several words
on either side of -- are the same: the expected steps before it, the observed
ones after it. Text that is a valid JSON list is read as JSON instead: a list of
names, of lists of names (groups) and, on the observed side, of objects such as
{"tool": "search"} or {"agent": "Billing agent"}. Without lists the worked
example of the metric is shown.

  python -m stepacc_core "search,[open_a,open_b],answer" "search,open_b,open_a"
  python -m stepacc_core search open_a answer -- search answer
  python -m stepacc_core "ask,Bill" "ask,agent:Bill" --strict-position
  python -m stepacc_core '["ask", ["open, a", "b"]]' '["ask", "open, a"]' --json

Exit code 0: the alignment was shown; 2: a list cannot be read, or nothing is
expected.
"""


_OPTIONS = ("--strict-position", "--json")


def worked_example() -> str:
    """Score the contract's worked example, one stray step at the front, and draw it."""
    return _text(*_worked_example())


def main(arguments: Sequence[str] | None = None) -> None:
    """Show the alignment of two lists of steps."""
    parser = argparse.ArgumentParser(
        prog="python -m stepacc_core",
        description="Show how observed steps align with expected ones.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("expected", nargs="?", metavar="EXPECTED", help="the steps that should be taken")
    parser.add_argument("observed", nargs="?", metavar="OBSERVED", help="the steps that were taken")
    parser.add_argument(_OPTIONS[0], action="store_true", help="compare position by position, without groups")
    parser.add_argument(_OPTIONS[1], action="store_true", help="print score and metadata as one JSON object")
    given = parser.parse_args(_joined(sys.argv[1:] if arguments is None else arguments))
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # a name may hold what it lacks
    if given.expected is None:
        result, drawn = _worked_example()
    elif given.observed is None:
        parser.error("give both lists, EXPECTED and OBSERVED; an empty one is written ''")
    else:
        result = _scored(parser, given)
        drawn = picture(result)
    if given.json:
        sys.stdout.write(json.dumps({"score": result.score, "metadata": result.metadata}, ensure_ascii=False) + "\n")
    elif sys.stdout.isatty():
        _print(result, drawn)
    else:
        sys.stdout.write(_text(result, drawn) + "\n")


def _joined(words: Sequence[str]) -> list[str]:
    """Turn `a b -- a c` into one list for each side; what is no such pair stays as it is."""
    options = [word for word in words if word in _OPTIONS]
    names = [word for word in words if word not in _OPTIONS]
    at = names.index("--") if "--" in names else 0
    if not at:
        return [*words]
    return [*options, "--", ",".join(names[:at]), ",".join(names[at + 1 :])]


def _worked_example() -> tuple[Result, Picture]:
    result = step_accuracy(["search", "open_document"], [Step("preamble_call"), Step("search"), Step("open_document")])
    return result, picture(result)


def _scored(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Result:
    try:
        expected, observed = parse_expected(given.expected), parse_observed(given.observed)
    except ConfigError as error:
        parser.error(str(error))
    method: ScoringMethod = "strict_position" if given.strict_position else "edit_distance"
    result = step_accuracy(expected, observed, scoring_method=method)
    if result.error:
        parser.error(str(result.error))
    return result


def _text(result: Result, drawn: Picture) -> str:
    return f"{drawn}\nscore {result.score:.3f}"


def _print(result: Result, drawn: Picture) -> None:
    """Print at the width of the terminal, in colour unless NO_COLOR is set."""
    from rich.console import Console  # noqa: PLC0415 (a pipe needs no colours)

    console = Console(highlight=False)
    console.print(drawn)
    console.print(f"score {result.score:.3f}")


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on; the flush at the end would say so once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
