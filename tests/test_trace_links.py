"""Links to a trace in its store's own UI: which templates give one, and that an id never changes where it leads."""

import pickle
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.errors import ConfigError
from stepacc_dagster.trace_links import EXAMPLE, TraceUrl

TEMPLATES = [
    EXAMPLE,
    "https://langfuse.example.org/project/p/traces/{trace_id}",
    "http://127.0.0.1:5000/#/experiments/1/traces?selectedEvaluationId={trace_id}",
    "https://grafana.example.org/explore?left=(trace:'{trace_id}',of:!(a,b))&again={trace_id}",
]
EXCEPT = st.characters(exclude_categories=["Cs"])


@pytest.mark.parametrize("template", TEMPLATES)
@given(trace_id=st.text(EXCEPT, min_size=1).filter(lambda text: text not in (".", "..")))
def test_the_id_is_all_that_differs_between_two_links(template: str, trace_id: str) -> None:
    quoted = (TraceUrl("https://x/{trace_id}").of(trace_id) or "").removeprefix("https://x/")
    assert unquote(quoted) == trace_id
    assert not set(quoted) & set("/?#&=<>()[]|`\\\"' \n")
    url = TraceUrl(template).of(trace_id)
    assert url == template.replace("{trace_id}", quoted)
    assert urlsplit(url)[:2] == urlsplit(template)[:2]


@pytest.mark.parametrize("trace_id", ["", ".", ".."])
def test_an_id_that_would_lead_elsewhere_has_no_link(trace_id: str) -> None:
    assert TraceUrl(EXAMPLE).of(trace_id) is None


def test_the_home_of_the_ui_is_its_scheme_and_host() -> None:
    assert TraceUrl("http://127.0.0.1:5000/#/t?x={trace_id}").home == "http://127.0.0.1:5000"


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        ("https://x.example.org/t", "has no {trace_id}, so every trace would have the same link"),
        ("https://x.example.org/{project}/{trace_id}", "has the placeholder {project}, and only {trace_id} is known"),
        ("https://x.example.org/{trace_id:>5}", "has the placeholder {trace_id:>5}"),
        ("https://x.example.org/{}/{trace_id}", "has the placeholder {}"),
        ("https://x.example.org/{trace_id}/{", "has the character '{'"),
        ("https://x.example.org/{trace_id}}", "has the character '}'"),
        ("https://x.example.org/a b/{trace_id}", "has the character ' '"),
        ("https://x.example.org/{trace_id}\n", r"has the character '\n'"),
        ("https://x.example.org/{trace_id}|", "has the character '|'"),
        ("https://x.example.org/{trace_id}>", "has the character '>'"),
        ("ftp://x.example.org/{trace_id}", "is no http or https address"),
        ("javascript://x/{trace_id}", "is no http or https address"),
        ("x.example.org/{trace_id}", "is no http or https address"),
        ("https:///{trace_id}", "is no http or https address"),
        ("", "is no http or https address"),
        ("https://{trace_id}.example.org/", "has {trace_id} in its host"),
        ("https://x.example.org{trace_id}", "has {trace_id} in its host"),
        ("https://x.example.org:port/{trace_id}", "has a host or port that cannot be read"),
        ("https://[::1/{trace_id}", "has a host or port that cannot be read"),
    ],
)
def test_a_template_that_gives_no_link_is_refused_in_a_sentence(template: str, fault: str) -> None:
    with pytest.raises(ConfigError) as raised:
        TraceUrl(template)
    said = str(raised.value)
    assert said.startswith(f"trace_url {template!r} {fault}")
    assert said.endswith(f"; write one such as {EXAMPLE}.")
    assert raised.value.setting == "trace_url"
    assert str(pickle.loads(pickle.dumps(raised.value))) == said  # noqa: S301 (our own)


def test_a_password_in_a_template_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as raised:
        TraceUrl("https://reader:hunter2@x.example.org/{trace_id}")
    assert "names a user or password" in str(raised.value)
    assert "hunter2" not in str(raised.value)
