"""What the page of a report says, whoever reads it."""

from stepacc_dagster.report.page import render
from stepacc_dagster.trace_links import TraceUrl
from tests.report_samples import HOSTILE, report, view

LINKS = TraceUrl("https://traces.example.org/{trace_id}")


def test_every_reason_for_having_no_score_names_an_example_which_leads_to_its_trace() -> None:
    page = render(report(view(trend=(), worst=())), trace_links=LINKS)

    [failed, inapplicable] = [line for line in page.splitlines() if line.startswith(("<tr><td>failed", "<tr><td>not "))]
    assert f'<a href="https://traces.example.org/{"b" * 32}"><bdi>{"b" * 32}</bdi></a>' in failed
    assert "No steps: &lt;script&gt;" in failed
    assert inapplicable.startswith("<tr><td>not applicable</td><td>content_not_recorded</td>")
    assert "<bdi>&lt;script&gt;" in inapplicable
    assert HOSTILE not in page


def test_a_session_as_an_example_has_no_link_for_its_id_is_none_of_a_trace() -> None:
    page = render(report(view(partition_type="session", trend=(), worst=())), trace_links=LINKS)

    assert f"<td><bdi>{'b' * 32}</bdi></td>" in page


def test_what_is_counted_of_traces_and_sessions_together_says_so_where_there_are_both() -> None:
    plain = {"trend": (), "worst": ()}
    both = render(report(view(**plain), view(partition_type="session", **plain)))
    alone = render(report(view(**plain)))

    assert both.count("still going on: traces and sessions together") == 2
    assert both.count("left out, since nobody annotated them: traces and sessions together") == 2
    assert "still going on</li>" in alone
    assert "together" not in alone


def test_a_score_says_what_it_was_measured_against() -> None:
    assert "measured against <bdi>annotation 7 of task " in render(report(view(trend=())))
