"""The worst alignments that a partition shows in Dagster."""

from markdown_it import MarkdownIt

from stepacc_core import Step, step_accuracy
from stepacc_core.picture import picture
from stepacc_dagster.run_metadata import worst_alignments
from stepacc_dagster.tally import Scored
from stepacc_dagster.trace_links import TraceUrl

PARSER = MarkdownIt("commonmark")


def scored(ident: str, expected: list[str], *observed: str) -> Scored:
    """An occurrence of names against names."""
    result = step_accuracy(expected, [Step(name) for name in observed])
    assert result.score is not None
    return Scored(result.score, "trace", ident, ident, tuple(expected), observed, result.metadata)


def test_each_is_a_picture_below_its_score_and_trace_the_worst_first() -> None:
    worst = [scored("t1", ["a", "b"], "x"), scored("t2", ["a", "b"], "a"), scored("t3", ["a"], "a")]
    shown = worst_alignments(worst, TraceUrl("https://traces.example.org/{trace_id}"))

    tokens = PARSER.parse(shown)
    assert [token.content for token in tokens if token.type == "inline"] == [
        "**0.000** trace [`t1`](<https://traces.example.org/t1>)",
        "**0.500** trace [`t2`](<https://traces.example.org/t2>)",
    ]
    assert [token.content for token in tokens if token.type == "fence"] == [
        f"{picture(entry.metadata)}\n" for entry in worst[:2]
    ]


def test_names_from_traces_stay_in_their_block() -> None:
    shown = worst_alignments([scored("t1", ["a"], "```\n<script>", "x" * 500, "\u202e")], None)

    assert [token.type for token in PARSER.parse(shown)] == ["paragraph_open", "inline", "paragraph_close", "fence"]
    assert "\u202e" not in shown


def test_what_is_as_expected_or_no_alignment_is_not_drawn() -> None:
    other = Scored(0.1, "trace", "t2", "t2", (), (), {"calls": 7})

    assert worst_alignments([scored("t1", ["a"], "a"), other], None) == ""


def test_five_are_drawn_and_long_ones_in_part() -> None:
    many = [scored(f"t{number}", ["a"], *["x", "y"] * 500) for number in range(10)]
    shown = worst_alignments(many, None)

    assert shown.count("**0.000**") == 5
    assert len(shown) < 5 * 4_000
