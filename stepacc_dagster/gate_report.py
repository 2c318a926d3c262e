"""A gate's decision as a document: JSON for programs, and JUnit XML for continuous integration."""

import dataclasses
from typing import Any
from xml.etree import ElementTree as ET

from stepacc_core.comparison.baselines import AgainstBaseline
from stepacc_core.comparison.forbidden import ForbiddenSearch
from stepacc_core.comparison.gate import Decision

_NAMES = {
    "scored": "something is scored",
    "mean": "the mean is high enough",
    "coverage": "enough is scored",
    "forbidden": "no forbidden step ran",
    "baseline": "no worse than the baseline",
}
"""What each criterion is called as a test case."""


def document(decision: Decision) -> dict[str, Any]:
    """Return a decision as JSON values."""
    return {
        "passed": decision.passed,
        "reason": decision.reason,
        "selection": decision.evidence.selection.document(),
        **dataclasses.asdict(decision.counts),
        "without_evaluation": decision.evidence.without_row,
        "coverage": decision.coverage,
        "criteria": [dataclasses.asdict(outcome) for outcome in decision.outcomes],
        "forbidden": [dataclasses.asdict(each) for each in looked.found] if (looked := _looked(decision)) else [],
        "forbidden_looked_at": looked and looked.looked_at,
        "forbidden_not_looked_at": looked and looked.unseen,
        "baseline": decision.baseline
        and {
            "name": decision.baseline.name,
            "revision": decision.baseline.revision,
            "selection": decision.baseline.selection.document(),
            "scored": len(decision.baseline.observations),
        },
        "comparison": decision.against and _comparison(decision.against),
    }


def _looked(decision: Decision) -> ForbiddenSearch | None:
    return decision.evidence.forbidden


def junit(decision: Decision) -> bytes:
    """Return a decision as JUnit XML: a test case for each criterion, in one suite.

    What failed is a `failure`, what was refused an `error`; the sentence is the message.
    """
    kinds = {"failed": "failure", "refused": "error"}
    states = [outcome.status for outcome in decision.outcomes]
    counts = {
        "tests": str(len(states)),
        "failures": str(states.count("failed")),
        "errors": str(states.count("refused")),
    }
    root = ET.Element("testsuites", {"name": "stepacc gate", **counts})
    selection = decision.evidence.selection
    suite = ET.SubElement(root, "testsuite", {"name": _clean(str(selection)), **counts})
    properties = ET.SubElement(suite, "properties")
    for name, value in selection.document().items():
        if value is not None:
            ET.SubElement(properties, "property", name=name, value=_clean(value))
    for outcome in decision.outcomes:
        case = ET.SubElement(
            suite, "testcase", classname=_clean(f"{selection.source}.{selection.metric}"), name=_NAMES[outcome.name]
        )
        if outcome.status in kinds:
            ET.SubElement(case, kinds[outcome.status], message=_clean(outcome.reason), type=outcome.name)
        ET.SubElement(case, "system-out").text = _clean(outcome.reason)
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _comparison(against: AgainstBaseline) -> dict[str, Any]:
    pairing = against.pairing
    return {
        "paired_by": pairing.by,
        "pairs": len(pairing.pairs),
        "change": against.change and dataclasses.asdict(against.change),
        "p": against.p,
        "alpha": against.alpha,
        "smallest_p": against.smallest_p,
        "tasks": [dataclasses.asdict(each) for each in against.tasks],
        "missing_tasks": against.missing_tasks,
        "other_reference": [pair.name for pair in pairing.other_reference],
        "other_revisions": pairing.other_revisions,
        "repeated": against.repeated,
        "baseline_only": len(pairing.before_only),
        "new_only": len(pairing.after_only),
    }


def _clean(text: str) -> str:
    """Return text without the characters that XML cannot hold, which are written as Python escapes them."""
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)
