"""Cleaning: one call, one span. Small passes over the spans of a trace, each telling what it assumed.

The order matters: what is nested is folded before instrumentations are compared, these before single call ids, and
the shape of the trace is told last.
"""

from stepacc_core.conventions.cleaning import content, crew, handoffs, plumbing, repeats, structure, unspanned
from stepacc_core.conventions.cleaning.draft import Draft, Pass

PASSES: tuple[Pass, ...] = (
    plumbing.merged_tools,
    plumbing.graph_nodes,
    plumbing.output_tools,
    repeats.nested_tools,
    handoffs.name_handoffs,
    repeats.second_instrumentation,
    repeats.same_call_id,
    repeats.wrapped_agents,
    repeats.nested_models,
    repeats.models_beside,
    unspanned.calls_from_completions,
    unspanned.managed_agents,
    content.arguments_from_completions,
    crew.calls_from_tasks,
    content.calls_without_span,
    content.hidden_content,
    structure.tree,
    structure.times,
)


def clean(draft: Draft) -> Draft:
    """Apply all passes in their order."""
    for each in PASSES:
        draft = each(draft)
    return draft
