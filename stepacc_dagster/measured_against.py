"""What a score was measured against, in words that lead to it.

The column `expected_from` tells by which way an expectation came to the metric: `column` for an annotation that was
stored for the trace, session or task, `annotations` and `config` for one in the metric's config.
"""

_UNANNOTATED = {
    None: "nothing: there was no expectation",
    "column": "steps that came with it, and no stored annotation",
    "annotations": "the annotations in the metric's config",
    "config": "the fallback in the metric's config",
}


def annotation_words(annotation_id: int, revision: int, target_type: str, target_id: str | None = None) -> str:
    """Return the name of an annotation revision: `annotation 3 of task refund, revision 1`.

    Args:
        annotation_id: id of the revision, as `stepacc lineage annotation` takes it.
        revision: its number among those of its target.
        target_type: `trace`, `session` or `task`.
        target_id: id of the target; where left out it is told by its kind alone, as `of the task`.
    """
    about = f"the {target_type}" if target_id is None else f"{target_type} {target_id}"
    return f"annotation {annotation_id} of {about}, revision {revision}"


def unannotated_words(expected_from: str | None) -> str:
    """Return where an expectation came from that no stored annotation set."""
    return _UNANNOTATED.get(expected_from, f"{expected_from}")
