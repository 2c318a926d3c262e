"""The picture as a fragment of HTML: an ordered list that wraps, without script and without addresses."""

from collections.abc import Iterator
from html import escape
from itertools import groupby

from stepacc_core.picture.rows import Bracket, Fold, Row, Shown, bracketed
from stepacc_core.picture.words import NOTHING, fold_text, kind, mark, word

PICTURE_CSS = """\
.sa-picture { --sa-match: #1a7f37; --sa-substitute: #9a6700; --sa-differs: #9a6700; --sa-insert: #0550ae;
  --sa-delete: #c4242b; --sa-other: #57606a; --sa-line: #8c959f; font: 13px/1.4 ui-monospace, monospace; }
@media (prefers-color-scheme: dark) {
  .sa-picture { --sa-match: #57ab5a; --sa-substitute: #d4a72c; --sa-differs: #d4a72c; --sa-insert: #6cb6ff;
    --sa-delete: #ff7b72; --sa-other: #9ea7b3; --sa-line: #768390; }
}
.sa-picture ol { display: flex; flex-wrap: wrap; gap: .4em; margin: .3em 0; padding: 0; list-style: none; }
.sa-picture li { display: block; overflow-wrap: anywhere; }
.sa-picture .sa-group { border: 1px solid var(--sa-line); border-width: 0 2px; border-radius: .5em; padding: 0 .4em; }
.sa-picture .sa-from { border-left-style: dotted; border-top-left-radius: 0; border-bottom-left-radius: 0; }
.sa-picture .sa-on { border-right-style: dotted; border-top-right-radius: 0; border-bottom-right-radius: 0; }
.sa-picture .sa-step { border-left: 3px solid var(--sa-op, var(--sa-other)); padding-left: .4em; }
.sa-picture .sa-step > span { display: block; }
.sa-picture .sa-op { font-weight: bold; color: var(--sa-op, var(--sa-other)); }
.sa-picture .sa-group ol { margin: 0; }
.sa-picture .sa-sides, .sa-picture .sa-nothing, .sa-picture .sa-fold { color: var(--sa-other); }
.sa-picture .sa-sides > span { display: block; }
.sa-picture .sa-sides > span:empty::before { content: "\\a0"; }
.sa-picture .sa-fold { align-self: center; }
.sa-picture .sa-trace, .sa-picture .sa-count { margin: .3em 0; }
.sa-picture .sa-arguments { font-size: .92em; }
.sa-picture .sa-match { --sa-op: var(--sa-match); }
.sa-picture .sa-substitute { --sa-op: var(--sa-substitute); }
.sa-picture .sa-differs { --sa-op: var(--sa-differs); }
.sa-picture .sa-insert { --sa-op: var(--sa-insert); }
.sa-picture .sa-delete { --sa-op: var(--sa-delete); }
"""
"""Style of the fragments, for light and dark; every rule is below the class `sa-picture`."""

_SIDES = '<li class="sa-sides"><span>expected</span><span></span><span>observed</span></li>'


def html_of(shown: tuple[Shown, ...], count: str) -> str:
    """Return a fragment in which everything from a trace is escaped and kept from turning the text around it."""
    parts = ['<div class="sa-picture">']
    for trace, stretch in groupby(bracketed(shown), key=lambda drawn: drawn[0].trace):
        if trace is not None:
            parts.append(f'<p class="sa-trace">trace {_text(trace)}</p>')
        parts += ["<ol>", _SIDES, *_entries(stretch), "</ol>"]
    parts += [f'<p class="sa-count">{escape(count)}</p>', "</div>"]
    return "".join(parts)


def _entries(stretch: Iterator[tuple[Shown, Bracket]]) -> Iterator[str]:
    for group, drawn in groupby(stretch, key=lambda drawn: drawn[0].group):
        entries, brackets = zip(*drawn, strict=True)
        items = [_fold(entry) if isinstance(entry, Fold) else _step(entry) for entry in entries]
        if group is None:
            yield from items
        else:
            before = "" if brackets[0].opens else " sa-from"
            after = "" if brackets[-1].closes else " sa-on"
            yield f'<li class="sa-group{before}{after}" title="in any order"><ol>{"".join(items)}</ol></li>'


def _step(row: Row) -> str:
    return (
        f'<li class="sa-step sa-{kind(row)}">{_side("expected", row.expected)}'
        f'<span class="sa-op">{mark(row)} {escape(word(row))}</span>{_side("observed", row.observed)}'
        + "".join(f'<span class="sa-arguments">{_text(str(difference))}</span>' for difference in row.differences)
        + "</li>"
    )


def _fold(fold: Fold) -> str:
    return f'<li class="sa-fold">{mark(fold)} {escape(fold_text(fold))}</li>'


def _side(side: str, name: str | None) -> str:
    if name is None:
        return f'<span class="sa-{side} sa-nothing" title="nothing {side}">{NOTHING}</span>'
    return f'<span class="sa-{side}" title="{side}">{_text(name)}</span>'


def _text(text: str) -> str:
    return f"<bdi>{escape(text)}</bdi>"
