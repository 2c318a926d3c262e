"""The picture of an alignment: one model of rows, and its faces.

`picture(metadata)` is text (`str`, `repr`), colours where rich prints it, and HTML in a notebook; `picture_html` gives
that HTML for a page, whose style is `PICTURE_CSS`.
"""

from collections.abc import Mapping
from typing import Any

from stepacc_core.picture.drawing import LONGEST, Picture, picture
from stepacc_core.picture.html import PICTURE_CSS
from stepacc_core.picture.rows import has_alignment

__all__ = ["PICTURE_CSS", "Picture", "has_alignment", "picture", "picture_html"]


def picture_html(metadata: Mapping[str, Any], *, longest: int = LONGEST) -> str:
    """Return the picture of the alignment in a result's metadata as a fragment of HTML.

    The fragment is one `<div class="sa-picture">`; put `PICTURE_CSS` into the page once. Everything from a trace is
    escaped. Metadata without an alignment, such as another metric's, give an empty string. At most
    `longest` entries are shown, each about 300 bytes; those in the middle are left out and counted.
    """
    return picture(metadata, longest=longest).html() if has_alignment(metadata) else ""
