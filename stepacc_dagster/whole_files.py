"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

_READABLE = 0o666


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Give a stream whose bytes are in the file once the block has ended well, and not before.

    After an error the file is as it was, or absent. What is no regular file, such as a pipe or a device, is written
    to as it is.

    Raises:
        OSError: the file cannot be written.
    """
    path = path.resolve()  # the file that a link names, not the link, is replaced
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as scratch:
        scratch_path = Path(scratch.name)
        try:
            yield cast("BinaryIO", scratch)
            scratch.flush()
            os.fsync(scratch.fileno())
            scratch_path.chmod(_READABLE & ~_umask())
            scratch_path.replace(path)
        except BaseException:  # an interrupt leaves nothing behind either
            scratch_path.unlink(missing_ok=True)
            raise


def _umask() -> int:
    """Return what the user lets nobody else do with his files; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
