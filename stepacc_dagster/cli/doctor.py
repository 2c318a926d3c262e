"""`stepacc doctor`."""

import dataclasses
import sys
from collections import Counter
from collections.abc import Iterator

import click
from rich.table import Table
from rich.text import Text

from stepacc_dagster.cli.output import cell, counted, emit_json, json_option, note, out
from stepacc_dagster.doctor.findings import LEVELS, Finding, Level, Section, worst
from stepacc_dagster.doctor.gather.installation import gather_installation
from stepacc_dagster.doctor.installation import check_installation

_STYLES: dict[Level, str] = {"ok": "green", "note": "cyan", "warning": "yellow", "error": "bold red"}


@click.command()
@click.option("--source", help="Name of the one source to examine; all that are configured where left out.")
@click.option("--strict", is_flag=True, help="End with exit code 1 for a warning, too.")
@json_option
def doctor(source: str | None, *, strict: bool, as_json: bool) -> None:
    """Examine the installation, the database, Dagster and the sources, and say what to do about what is wrong.

    Nothing is changed and no password is shown. Findings are ok, note (worth knowing), warning (something is not done
    that most people expect) and error (something fails). The exit code is 0 without errors, and 1 with one; --strict
    makes it 1 for a warning, too.

    \b
    stepacc doctor
    stepacc doctor --source support_agent --json
    """  # noqa: D301 (click reads the backspace)
    found: list[Finding] = []
    for section in _sections(source):
        _tell(section, as_json=as_json)
        found += section.findings
    if not as_json:
        counts = Counter(finding.level for finding in found)
        told = [counted(counts[level], level) for level in reversed(LEVELS) if counts[level] and level != "ok"]
        note(f"{', '.join(told)}." if told else "All is well.")
    failing: set[Level] = {"error", "warning"} if strict else {"error"}
    sys.exit(1 if worst(found) in failing else 0)


def _sections(source: str | None) -> Iterator[Section]:
    installation = gather_installation()
    yield Section("Installation", tuple(check_installation(installation)))
    if installation.unimportable:
        return
    from stepacc_dagster.doctor.examination import examine  # noqa: PLC0415 (needs what was looked at above)

    yield from examine(source)


def _tell(section: Section, *, as_json: bool) -> None:
    if as_json:
        for finding in section.findings:
            emit_json({"about": section.about, **dataclasses.asdict(finding)})
        return
    console = out()
    console.print(Text.assemble(cell(section.about), style="bold"), soft_wrap=True)
    table = Table.grid(padding=(0, 1))
    table.add_column(width=max(map(len, LEVELS)) + 2, justify="right")
    table.add_column(overflow="fold")
    for finding in section.findings:
        table.add_row(Text(finding.level, style=_STYLES[finding.level]), cell(finding.what))
        if finding.what_to_do:
            table.add_row("", cell(f"-> {finding.what_to_do}"))
    console.print(table)
