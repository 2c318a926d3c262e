"""Where in an annotations file something stands, for messages."""

from collections.abc import Sequence
from typing import Protocol

import yaml


class Places(Protocol):
    """Tells where the entries of a file stand, and what is in them."""

    def line(self, path: Sequence[str | int], key: str | None = None) -> int | None:
        """Return the line, from 1 on, of what a path of keys and places leads to, or of what is nearest to it.

        Args:
            path: from the entry on, whose place from 0 on comes first; empty for the file.
            key: a key somewhere below that is looked for.
        """


class RowPlaces:
    """Lines of the rows of a CSV file; a cell has no line of its own."""

    def __init__(self, lines: Sequence[int]) -> None:
        self._lines = lines

    def line(self, path: Sequence[str | int], key: str | None = None) -> int | None:  # noqa: ARG002 (as Places)
        """Return the line on which the row ends."""
        return self._lines[int(path[0])] if path else None


class DocumentPlaces:
    """Lines of a YAML or JSON file, which is read once more for them: only messages need them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root: yaml.Node | None = None

    def line(self, path: Sequence[str | int], key: str | None = None) -> int | None:
        """Return the line of the key or item at the path."""
        try:
            root = self._root = self._root or yaml.compose(self._text, yaml.SafeLoader)
            at, mark = _followed(root, path)
            found = _key_below(at, key) if key else None
        except (yaml.YAMLError, RecursionError):  # JSON that is no YAML, as with tabs
            return None
        if found is not None:
            mark = found.start_mark
        return mark.line + 1 if mark and path else None


def _followed(node: yaml.Node | None, path: Sequence[str | int]) -> tuple[yaml.Node | None, yaml.Mark | None]:
    """Follow a path as far as it leads; return the node there, and where it or its key stands."""
    entries = _pair(node, "annotations")
    node = entries[1] if entries else node
    mark = node.start_mark if node else None
    for part in path:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            mark = node.start_mark
        elif (pair := _pair(node, str(part))) is not None:
            mark, node = pair[0].start_mark, pair[1]
        else:
            break
    return node, mark


def _pair(node: yaml.Node | None, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next(((name, value) for name, value in pairs if name.value == key), None)


def _key_below(node: yaml.Node | None, key: str) -> yaml.Node | None:
    waiting, seen = [node], set[int]()
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in seen:  # an anchor may stand in many places
            continue
        seen.add(id(found))
        if isinstance(found, yaml.MappingNode):
            if (pair := _pair(found, key)) is not None:
                return pair[0]
            waiting += [value for _, value in reversed(found.value)]
        elif isinstance(found, yaml.SequenceNode):
            waiting += reversed(found.value)
    return None
