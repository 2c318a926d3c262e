"""The redaction key of the local home: made once, readable by its owner only."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from stepacc_dagster.errors import RedactionKeyError
from stepacc_dagster.failures import URL_VARIABLE
from stepacc_dagster.local.home import local_home, locked, make_home
from stepacc_dagster.redaction.key import KEY_VARIABLE

_BYTES = 32
_OTHERS = 0o077


def kept_key() -> str:
    """Return the key, made where there is none yet.

    Raises:
        RedactionKeyError: others may read the file, or it is empty.
    """
    home = local_home()
    make_home(home)
    path = home / "redaction.key"
    with locked(home / "redaction.lock"):
        if not path.exists():
            _write(path, secrets.token_hex(_BYTES))
        if path.stat().st_mode & _OTHERS:
            msg = f"Others may read {path}, which holds the key of redacted values: run chmod 600 {path}."
            raise RedactionKeyError(msg)
        key = path.read_text(encoding="ascii", errors="replace").strip()
    if not key:
        msg = f"{path}, which holds the key of redacted values, is empty: put the key back from a backup."
        raise RedactionKeyError(msg)
    return key


def key_for_children() -> Mapping[str, str]:
    """Return the variable by which processes of a private server get its key; none where the environment has it."""
    if os.environ.get(KEY_VARIABLE) or os.environ.get(URL_VARIABLE):
        return {}
    return {KEY_VARIABLE: kept_key()}


def _write(path: Path, key: str) -> None:
    """Write the file in one go, so that a crash leaves none that is cut off."""
    scratch = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{key}\n")
        file.flush()
        os.fsync(file.fileno())
    owner = path.parent.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:  # root in a user's folder: leave the file usable to them
        os.chown(scratch, owner.st_uid, owner.st_gid)
    scratch.replace(path)
