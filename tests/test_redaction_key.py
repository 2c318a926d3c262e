"""Where the key of redaction comes from, and that nobody else reads it."""

import ast
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import stepacc_dagster
from stepacc_dagster.errors import RedactionKeyError
from stepacc_dagster.local.redaction_key import key_for_children
from stepacc_dagster.redaction.key import KEY_VARIABLE, redaction_key


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local home, and no key in the environment."""
    monkeypatch.delenv(KEY_VARIABLE)
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_private_server_gets_a_key_once_that_only_its_owner_reads(home: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(lambda _: redaction_key(), range(16)))

    [key] = keys
    path = home / "redaction.key"
    assert path.read_text().strip().encode() == key
    assert len(key) == 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(each.name for each in home.iterdir()) == ["redaction.key", "redaction.lock"]
    assert key_for_children() == {KEY_VARIABLE: key.decode()}


def test_a_key_that_others_may_read_or_that_is_gone_is_refused(home: Path) -> None:
    redaction_key()
    path = home / "redaction.key"
    path.chmod(0o640)
    with pytest.raises(RedactionKeyError, match="run chmod 600"):
        redaction_key()

    path.chmod(0o600)
    path.write_text("\n")
    with pytest.raises(RedactionKeyError, match="put the key back"):
        redaction_key()


@pytest.mark.usefixtures("home")
def test_a_database_that_others_may_share_needs_a_key_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPACC_DATABASE_URL", "postgresql://host/shared")
    with pytest.raises(RedactionKeyError, match="STEPACC_REDACTION_KEY is not set"):
        redaction_key()

    monkeypatch.setenv(KEY_VARIABLE, " a key of more than thirty-two characters ")
    assert redaction_key() == b"a key of more than thirty-two characters"
    assert key_for_children() == {}


def test_no_door_lands_spans_without_saying_what_redacts_them() -> None:
    calls = [
        node
        for path in Path(stepacc_dagster.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "land_spans"
    ]

    assert len(calls) >= 3
    assert [ast.unparse(call) for call in calls if len(call.args) + len(call.keywords) < 4] == []
