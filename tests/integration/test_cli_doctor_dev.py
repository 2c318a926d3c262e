"""`stepacc doctor` beside a real webserver and daemon, and after they are gone."""

import signal
from pathlib import Path

import pytest

from tests.cli_access import RECORDED, stepacc
from tests.integration.doctor_access import describe, doctor
from tests.integration.test_cli_dev import dev, eventually, needs_proc


@needs_proc
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_daemon_and_its_sensors_are_told_as_they_are(open_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPACC_HOME", str(open_home))
    for name in ("followed", "blind", "still"):
        (open_home / "defs" / name).mkdir(parents=True)
    often = "{interval_seconds: 5}"
    describe(open_home, "followed", follow=often)
    describe(open_home, "blind", follow=often, store="{kind: phoenix}", store_url_env="PHOENIX_URL")
    describe(open_home, "still", follow="{enabled: false}")
    assert stepacc("db", "upgrade").code == 0
    assert stepacc("import", "traces", "--source", "followed", RECORDED).code == 0
    with dev(open_home) as running:
        assert eventually(lambda: doctor().says("The sensor followed_changes is on, last ticked"))
        assert eventually(lambda: doctor().says("The last tick of blind_changes"))
        found = doctor()
        assert found.one("The daemon is alive").level == "ok"
        failed = found.one("The last tick of blind_changes", "Source blind")
        assert failed.what.endswith("`PHOENIX_URL` is not set; set it to the database's URL, such as "
                                    "postgresql+psycopg://user:password@host:5432/database.")  # fmt: skip
        found.one("The sensor still_changes is off (`follow.enabled` is false)", "Source still")
        assert eventually(lambda: doctor().says("0 of 1 occurrence scored"))
        code, said = running.end(signal.SIGINT)
    assert code == 0, said
    found = doctor("--source", "followed")
    assert found.bad("error") == []
    found.one("The sensor followed_changes is on", "Source followed")
