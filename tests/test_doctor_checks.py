"""The checks of `stepacc doctor`: from facts to findings, in the words that people read (tests/cases/doctor.txt)."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepacc_dagster.doctor.coverage import Annotated, AnnotatedKind, Coverage, Sample, check_coverage
from stepacc_dagster.doctor.database import Database, Schema, Server, check_database
from stepacc_dagster.doctor.findings import LEVELS, Finding, of_metrics, worst
from stepacc_dagster.doctor.following import Following, Store, check_following, check_store
from stepacc_dagster.doctor.installation import Installation, Variable, check_installation, library_version
from stepacc_dagster.doctor.instance import Daemon, Instance, Monitoring, Queue, check_instance, driver_problem
from stepacc_dagster.doctor.runs import Pool, UnfinishedRun, check_pools, check_runs
from stepacc_dagster.doctor.tickers import Ticker
from stepacc_dagster.doctor.windows import Due, WindowFact, Windows, check_windows
from stepacc_dagster.doctor.wording import lasting, listed
from stepacc_dagster.stores.margins import unnoticed
from stepacc_dagster.stores.settings import (
    LangfuseV2Settings,
    MlflowSettings,
    OtelSpansSettings,
    PhoenixSettings,
    TableColumns,
    TableSettings,
)
from stepacc_dagster.windows import spanned

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
EXPECTED = Path(__file__).parent / "cases" / "doctor.txt"


def ago(**units: float) -> datetime:
    return NOW - timedelta(**units)


PACKAGES = {
    "dagster": "1.13.27",
    "dagster-postgres": "0.29.27",
    "dagster-webserver": "1.13.27",
    "sqlalchemy": "2.1.9",
    "alembic": "1.20.1",
    "psycopg": "3.3.9",
}
INSTALLED = Installation("0.1.0", "3.11.7", "Linux x86_64", PACKAGES)


def installed(**versions: str | None) -> Installation:
    changed = {**PACKAGES, **{name.replace("_", "-"): version for name, version in versions.items()}}
    return replace(INSTALLED, packages={name: version for name, version in changed.items() if version})


SERVER = Server("18.4", "shop", read_only=False, may_create=True, may_stage=True)
SCHEMA = Schema("0005", "0005", newer=False, may_upgrade=True, forbidden=())
BEAT = (Daemon("SENSOR", ago(seconds=20)), Daemon("SCHEDULER", ago(seconds=40)))
INSTANCE = Instance(
    NOW,
    storage="the database localhost:5432/shop",
    revision="abc",
    expected="abc",
    daemons=BEAT,
    monitoring=Monitoring(enabled=True, frees_slots=True),
    queue=Queue(enabled=True, limit=4, queued=0),
)
TICKED = Ticker("shop_changes", "on", ago(seconds=12), None)
FOLLOWING = Following(
    now=NOW,
    source="shop",
    sensor="shop_changes",
    schedule="shop_daily",
    enabled=True,
    interval=timedelta(seconds=30),
    tickers=(TICKED,),
    has_daemon=True,
    checked_at=ago(seconds=12),
)
DAYS = [f"2026-11-{day:02}" for day in range(1, 30)]
WINDOWS = Windows(
    "shop",
    "2026-11-01",
    "2026-11-30",
    known=tuple(WindowFact(key) for key in DAYS),
    outside=(),
    followed=True,
    rescored=True,
    has_spans=True,
)
COVERAGE = Coverage(
    "agent.step_accuracy",
    "2.0.0",
    "b7fc163a0c",
    present=True,
    windows=29,
    scored=98,
    failed=1,
    not_applicable=1,
    skipped=0,
    unsettled=0,
)
SAMPLE = Sample(traces=100, gone=0, oldest_open=None, annotated=(), reasons=(), hint=None)


def of_windows(*facts: WindowFact, **settings: object) -> Iterable[Finding]:
    return check_windows(replace(WINDOWS, known=facts, **settings))  # type: ignore[arg-type]


def due(reason: Due, *keys: str, asked: bool = False) -> list[WindowFact]:
    return [WindowFact(key, reason, asked) for key in keys]


def covered(*coverage: Coverage, **sample: object) -> Iterable[Finding]:
    return check_coverage("shop", coverage, replace(SAMPLE, **sample), NOW)  # type: ignore[arg-type]


CASES: dict[str, Iterable[Finding]] = {
    "an installation as it should be": check_installation(
        replace(INSTALLED, variables=(Variable("STEPACC_DATABASE_URL", "localhost:5432/shop"),))
    ),
    "dagster and dagster-postgres of two releases": check_installation(installed(dagster_postgres="0.11.14")),
    "a dagster nobody knows, and no webserver": check_installation(installed(dagster="2.0.0", dagster_webserver=None)),
    "a webserver of another release": check_installation(installed(dagster_webserver="1.13.29")),
    "only the packages for files": check_installation(replace(INSTALLED, packages={})),
    "a driver that cannot be loaded, and a URL of no use": check_installation(
        replace(
            INSTALLED,
            unimportable={"psycopg2": "libpq.so.5: cannot open shared object file"},
            variables=(Variable("STEPACC_DATABASE_URL", problem="The database URL cannot be read: write it anew."),),
        )
    ),
    "a database as it should be": check_database(Database(server=SERVER, schema=SCHEMA)),
    "no database yet": check_database(Database(absent="STEPACC_DATABASE_URL is not set.")),
    "a database that cannot be used": check_database(Database(problem="The database at h:1/d does not answer.")),
    "no tables, and a user who may make them": check_database(Database(server=SERVER)),
    "no tables, and a user who may not": check_database(Database(server=replace(SERVER, may_create=False))),
    "older tables": check_database(Database(server=SERVER, schema=replace(SCHEMA, revision="0003"))),
    "older tables of somebody else": check_database(
        Database(server=SERVER, schema=replace(SCHEMA, revision="0003", may_upgrade=False))
    ),
    "newer tables": check_database(Database(server=SERVER, schema=replace(SCHEMA, revision="0099", newer=True))),
    "another redaction key": check_database(
        Database(server=SERVER, schema=SCHEMA, redaction="The redaction key here is not the one of this database.")
    ),
    "a standby, and a user who may read a part": check_database(
        Database(
            server=replace(SERVER, read_only=True, may_stage=False),
            schema=replace(
                SCHEMA, forbidden=("UPDATE on scores", "SELECT on traces", *(f"INSERT on {n}" for n in "abcdef"))
            ),
        )
    ),
    "an instance as it should be": check_instance(INSTANCE),
    "no instance yet": check_instance(Instance(NOW, absent="There is no Dagster instance in /home yet.")),
    "an instance that cannot be opened": check_instance(Instance(NOW, problem="Its storage does not answer.")),
    "no daemon ever, nothing monitored, no queue": check_instance(
        replace(
            INSTANCE,
            daemons=(Daemon("SENSOR", None),),
            monitoring=Monitoring(enabled=False, frees_slots=False),
            queue=Queue(enabled=False, limit=None, queued=0),
        )
    ),
    "a daemon that died while runs wait, and slots that stay held": check_instance(
        replace(
            INSTANCE,
            daemons=(Daemon("SENSOR", ago(hours=3)),),
            monitoring=Monitoring(enabled=True, frees_slots=False),
            queue=Queue(enabled=True, limit=None, queued=7),
        )
    ),
    "a daemon of which a part is silent and another fails, and older tables": check_instance(
        replace(
            INSTANCE,
            revision="abb",
            daemons=(*BEAT, Daemon("BACKFILL", ago(hours=1)), Daemon("ASSET", ago(seconds=5), "Its code is gone.")),
            queue=Queue(enabled=True, limit=0, queued=1),
        )
    ),
    "pools": check_pools(
        [
            Pool("stepacc_a", limit=4, declared=4),
            Pool("stepacc_b", limit=2, declared=4, waiting=3),
            Pool("stepacc_c", limit=None, declared=4),
            Pool("stepacc_d", limit=0, declared=4),
            Pool("stepacc_e", limit=2, declared=4, held_by_ended=("run 1",)),
            Pool("stepacc_f", limit=1, declared=1, held_by_ended=("run 2",)),
            Pool("stepacc_g", limit=None, declared=4, in_force=False),
        ]
    ),
    "runs within their time": check_runs([UnfinishedRun("r", "STARTED", ago(minutes=5), timedelta(hours=1))], NOW),
    "runs over their time, and one whose process is gone": check_runs(
        [
            UnfinishedRun("r1", "QUEUED", ago(hours=5), timedelta(hours=2)),
            UnfinishedRun("r2", "STARTED", ago(days=3), timedelta(hours=2)),
            UnfinishedRun("r3", "STARTED", ago(days=3), None),
            UnfinishedRun("r4", "STARTED", ago(minutes=3), timedelta(hours=2), is_dead=True),
            *(UnfinishedRun(f"s{n}", "STARTING", ago(minutes=30), timedelta(minutes=3)) for n in range(5)),
        ],
        NOW,
    ),
    "stores that can be read": (
        finding
        for settings in (
            OtelSpansSettings(),
            PhoenixSettings(reread_ids=500),
            MlflowSettings(look_back_days=1),
            LangfuseV2Settings(),
            TableSettings("calls", columns=TableColumns("a", "b", "c", "d")),
            TableSettings("calls", columns=TableColumns("a", "b", "c", "d", arrival="number")),
        )
        for finding in check_store(Store(settings.kind, settings.table_name, unnoticed=unnoticed(settings)))
    ),
    "a store that cannot": check_store(Store("phoenix", "public.spans", "It has no table public.spans.")),
    "changes that are followed": check_following(FOLLOWING),
    "a sensor that somebody stopped, and a schedule somebody started": check_following(
        replace(
            FOLLOWING,
            tickers=(replace(TICKED, chosen="off"), Ticker("shop_daily", "on", ago(hours=11), None)),
            checked_at=ago(days=4),
        )
    ),
    "a sensor off by its settings": check_following(replace(FOLLOWING, enabled=False, tickers=())),
    "a sensor that ran, and no daemon lives": check_following(replace(FOLLOWING, has_daemon=False)),
    "a sensor that never ran, without a daemon": check_following(replace(FOLLOWING, tickers=(), has_daemon=False)),
    "a schedule somebody started, and no daemon lives": check_following(
        replace(
            FOLLOWING,
            enabled=False,
            tickers=(Ticker("shop_daily", "on", ago(hours=11), None),),
            has_daemon=False,
            checked_at=ago(days=4),
        )
    ),
    "a sensor whose last tick failed": check_following(
        replace(FOLLOWING, tickers=(replace(TICKED, failure="The database at h:1/d does not answer."),))
    ),
    "a sensor that never ticked": check_following(replace(FOLLOWING, tickers=(), checked_at=None)),
    "a sensor that no longer ticks": check_following(
        replace(FOLLOWING, tickers=(replace(TICKED, ticked_at=ago(hours=2)),), checked_at=ago(hours=2))
    ),
    "the instance where it ticks counts": check_following(
        replace(FOLLOWING, tickers=(Ticker("shop_changes", "off", None, None), TICKED))
    ),
    "windows up to date": check_windows(WINDOWS),
    "nothing landed": of_windows(has_spans=False),
    "nothing ingested": of_windows(followed=False),
    "windows that failed": of_windows(
        WindowFact("2026-11-01", None, problem="Metric `m` raised ValueError."),
        WindowFact("2026-11-02", None, problem="Metric `m` raised ValueError."),
        WindowFact("2026-11-03", "ingest", problem="The database does not answer."),
        *(WindowFact(f"2026-11-0{n}", "score", problem=f"Reason {n}.") for n in range(4, 8)),
    ),
    "windows out of date, of which nobody takes care": of_windows(
        *due("ingest", "2026-11-01"),
        *due("ingest again", "2026-11-02", "2026-11-04"),
        *due("score", "2026-11-05"),
        *due("score by the new version", "2026-11-06"),
        followed=False,
    ),
    "windows being brought up to date": of_windows(*due("score", *DAYS, asked=True)),
    "windows asked for by a sensor that is off since": of_windows(*due("score", *DAYS, asked=True), followed=False),
    "windows of another version, left so by the settings": of_windows(
        *due("score by the new version", *DAYS), rescored=False
    ),
    "windows outside the source's partitions": of_windows(
        WindowFact("2026-11-01"), outside=("2026-10-30", "2026-10-31", "2027-01-01")
    ),
    "scores that cover all": covered(COVERAGE),
    "scores that cover a part": covered(
        replace(COVERAGE, scored=60, failed=30, skipped=10),
        replace(COVERAGE, version="1.0.0", present=False, failed=0, not_applicable=0),
        reasons=(("missing_expected_steps", 20), ("no_required_kinds", 1)),
    ),
    "scores that are shown beside those of the windows": covered(
        replace(COVERAGE, rows=100),
        replace(COVERAGE, rows=103, erased=2),
        replace(COVERAGE, rows=103, erased=5),
        replace(COVERAGE, rows=101),
        replace(COVERAGE, rows=98, erased=1),
        replace(COVERAGE, rows=0),
    ),
    "scores that cover little": covered(replace(COVERAGE, scored=0, failed=100)),
    "nothing to score": covered(replace(COVERAGE, scored=0, failed=0, not_applicable=0)),
    "an entry agent that is a step": covered(COVERAGE, hint="Agent `boss` is the first of 5 of 9 alignments."),
    "what nobody annotated": covered(
        COVERAGE,
        annotated=(
            AnnotatedKind(
                "trace",
                skipped=False,
                tasks=(
                    Annotated(None, 9, 9),
                    *(Annotated(f"t{n}", 8, 4) for n in range(6)),
                    Annotated("done", 10, 0),
                ),
            ),
            AnnotatedKind("session", skipped=True, tasks=(Annotated("t1", 1, 1),)),
        ),
    ),
    "what goes on, and what is gone": covered(
        replace(COVERAGE, unsettled=2), oldest_open=("4bf92f", ago(minutes=90)), gone=3
    ),
}


def told(findings: Iterable[Finding]) -> str:
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{finding.level}: {finding.what}")
        if finding.what_to_do:
            lines.append(f"    -> {finding.what_to_do}")
    return "\n".join(lines)


def expected() -> dict[str, str]:
    blocks = EXPECTED.read_text("utf-8").strip().split("\n\n")
    return dict(block.removeprefix("# ").split("\n", 1) for block in blocks[1:])


TOLD = {name: told(findings) for name, findings in CASES.items()}


def test_every_case_is_in_the_file_and_none_is_left_over() -> None:
    assert list(expected()) == list(TOLD)


@pytest.mark.parametrize("name", TOLD)
def test_facts_give_these_findings(name: str) -> None:
    assert TOLD[name] == expected()[name]


@given(st.integers(0, 400), st.integers(0, 400))
def test_the_libraries_of_a_release_are_sixteen_minors_ahead(minor: int, patch: int) -> None:
    assert library_version(f"1.{minor}.{patch}") == f"0.{minor + 16}.{patch}"


@pytest.mark.parametrize("version", ["1.13", "1!0+dev", "1.13.27rc1", "0.15.9", "2.0.0", ""])
def test_another_form_of_version_has_no_rule(version: str) -> None:
    assert library_version(version) is None


@pytest.mark.parametrize(
    ("named", "sqlalchemy", "works"),
    [
        ("postgresql+psycopg2", "2.1.9", True),
        ("postgresql", "2.0.58", True),
        ("postgresql", "2.1.0b1", False),
        ("postgresql", "3.0.0", False),
        ("postgresql+psycopg", "2.0.58", False),
        ("postgresql+asyncpg", "2.1.9", False),
    ],
)
def test_a_driver_works_with_dagster_postgres_or_is_named(named: str, sqlalchemy: str, works: bool) -> None:  # noqa: FBT001
    problem = driver_problem(named, sqlalchemy)
    assert (problem is None) == works
    assert works or f"{named}://" in str(problem)


@given(st.lists(st.sampled_from(LEVELS)))
def test_the_worst_finding_counts(levels: list[str]) -> None:
    findings = [Finding(level, "what", "do") for level in levels]  # type: ignore[arg-type]
    assert worst(findings) == max(levels, key=LEVELS.index, default="ok")


def test_a_complaint_without_a_remedy_is_refused() -> None:
    with pytest.raises(ValueError, match="what to do"):
        Finding("note", "something")
    assert Finding("ok", "something").what_to_do is None


PASSWORDS = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=3).filter(
    lambda text: text not in "://u:***@host:5432/db?password=*** and more"
)


@given(PASSWORDS)
def test_no_finding_shows_the_password_of_a_url(password: str) -> None:
    for quoted in (f"postgresql://u:{password}@host:5432/db", f"postgresql://host/db?password={password}"):
        finding = Finding("error", f"It said {quoted} and more", f"Write {quoted}")
        for text in (finding.what, finding.what_to_do or ""):
            assert password not in text
            assert "host" in text


@given(
    st.lists(
        st.builds(
            WindowFact,
            st.sampled_from(DAYS),
            st.sampled_from([None, "ingest", "ingest again", "score", "score by the new version"]),
            st.booleans(),
            st.sampled_from([None, "a", "b", "c", "d", "e"]),
        ),
        min_size=1,
        unique_by=lambda window: window.key,
    ),
    st.booleans(),
    st.booleans(),
)
def test_every_window_that_is_not_up_to_date_is_counted_once(
    windows: list[WindowFact],
    followed: bool,  # noqa: FBT001
    rescored: bool,  # noqa: FBT001
) -> None:
    facts = tuple(sorted(windows, key=lambda window: window.key))
    findings = list(check_windows(replace(WINDOWS, known=facts, followed=followed, rescored=rescored)))
    bad = [window for window in facts if window.due or window.problem]
    assert sum(int(finding.what.split()[0]) for finding in findings if finding.level != "ok") == len(bad)
    assert [finding.level for finding in findings if finding.level == "ok"] == ([] if bad else ["ok"])
    final = any(window.problem and window.due is None for window in facts)
    assert (worst(findings) == "error") == final


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 seconds"),
        (1, "1 second"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7_200, "2 hours"),
        (1e6, "11 days"),
    ],
)
def test_a_time_is_told_in_its_largest_unit(seconds: float, words: str) -> None:
    assert lasting(timedelta(seconds=seconds)) == words


def test_lists_are_short() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcdefg"), 3) == "a, b, c and 4 more"
    assert (spanned(["a"]), spanned(["a", "b", "c"])) == ("a", "a to c")


def test_what_holds_for_all_metrics_is_told_once_and_all_else_with_its_metric() -> None:
    shared, own = Finding("ok", "All windows are up to date."), Finding("ok", "Nobody annotated 3 traces.")
    named = Finding("ok", "agent.b 1.0.0: 3 of 4 scored.")
    found = [finding.what for finding in of_metrics({"agent.a": [shared, own], "agent.b": [shared, named]})]
    assert found == [shared.what, f"agent.a: {own.what}", named.what]
    assert list(of_metrics({"agent.a": [shared, own]})) == [shared, own]
