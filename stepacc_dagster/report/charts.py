"""The charts of a report, as SVG that needs no script: drawn by Vega-Lite when the report is made.

Colours of text and lines are those of the page around them, so that one drawing serves light and dark.
"""

from collections.abc import Sequence
from typing import Any

import vl_convert

from stepacc_dagster.report.model import Bin, TrendPoint

_VEGA_LITE = "5.20"
_WIDTH, _HEIGHT = 290, 150
"""Pixels of the plotting area: a chart with its axes fits a telephone unscaled."""
_COLOURS = ["#3b82c4", "#c46a1b", "#2f9e5c", "#a34fb5", "#b0893a", "#c4485a"]
"""Told apart on white and on black, and in their order by most colour-blind people."""
_MANY_PERIODS = 60

_CONFIG: dict[str, Any] = {
    "background": None,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "domainColor": "currentColor",
        "tickColor": "currentColor",
        "gridColor": "currentColor",
        "gridOpacity": 0.15,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
    },
    "legend": {"labelColor": "currentColor", "titleColor": "currentColor", "orient": "top", "labelFontSize": 11},
    "range": {"category": _COLOURS},
}


def trend_chart(points: Sequence[TrendPoint], description: str) -> str:
    """Draw the mean score of each period, one line for each version.

    Args:
        points: the means; with none there is nothing to draw.
        description: what the chart shows, for those who cannot see it.

    Returns:
        One `<svg>` element, or an empty string.
    """
    if not points:
        return ""
    periods = len({point.period for point in points})
    return _svg(
        description,
        data=[{"period": _moment(point.period), "mean": point.mean, "version": point.version} for point in points],
        mark={"type": "line", "point": {"size": 25} if periods <= _MANY_PERIODS else False},
        encoding={
            "x": {
                "field": "period",
                "type": "temporal",
                "title": None,
                "axis": {"grid": False, "labelOverlap": True, "tickCount": 4},
            },
            "y": {
                "field": "mean",
                "type": "quantitative",
                "title": "mean score",
                "scale": {"domain": [0, 1]},
                "axis": {"tickCount": 5},
            },
            "color": {"field": "version", "type": "nominal", "title": "version"},
        },
    )


def distribution_chart(bins: Sequence[Bin], description: str) -> str:
    """Draw how many occurrences have which score; an empty string where there are none."""
    if not any(each.count for each in bins):
        return ""
    labels = [each.label for each in bins]
    return _svg(
        description,
        data=[{"score": each.label, "count": each.count} for each in bins],
        mark={"type": "bar", "color": _COLOURS[0]},
        encoding={
            "x": {
                "field": "score",
                "type": "ordinal",
                "sort": labels,
                "title": "score, from",
                "axis": {"labelAngle": 0},
            },
            "y": {
                "field": "count",
                "type": "quantitative",
                "title": "occurrences",
                "axis": {"tickCount": 4, "format": "~s", "tickMinStep": 1},
            },
        },
    )


def _svg(description: str, *, data: list[dict[str, Any]], mark: dict[str, Any], encoding: dict[str, Any]) -> str:
    spec = {
        "description": description,
        "width": _WIDTH,
        "height": _HEIGHT,
        "data": {"values": data},
        "mark": mark,
        "encoding": encoding,
        "config": _CONFIG,
    }
    drawn: str = vl_convert.vegalite_to_svg(spec, vl_version=_VEGA_LITE)
    return drawn


def _moment(period: str) -> str:
    """Return a period as a time that Vega reads as local: `2026-11-30T14:00`; days as their midnight."""
    day, hour = period[:10], period[11:]
    return f"{day}T{hour or '00:00'}"
