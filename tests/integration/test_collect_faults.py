"""What `stepacc collect` acknowledged is in the database, whatever happens to either of them."""

import http.client
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult

from stepacc_dagster.local.postgres import throwaway_postgres
from stepacc_dagster.storage.locks import lock
from stepacc_dagster.storage.schema import upgrade
from tests.integration.collect_access import PROTOBUF, SOURCE, Answer, Collector, body_of, collecting, landed
from tests.integration.conftest import opened

MIB = 1024 * 1024


@contextmanager
def landing_held_up(url: str) -> Iterator[None]:
    """Hold the lock that every landing of the source has to wait for, as a long import does."""
    with opened(url) as engine, engine.begin() as connection:
        lock(connection, "otel_spans", SOURCE)
        yield


def retry_after(answer: Answer) -> int:
    """Return the seconds after which to try again."""
    return int(answer.headers["retry-after"])


def test_a_kill_in_mid_load_loses_nothing_that_was_acknowledged(migrated_url: str) -> None:
    acknowledged: list[int] = []
    started = threading.Event()
    with collecting(migrated_url) as collector:

        def send(first: int) -> None:
            connection = http.client.HTTPConnection(collector.url.removeprefix("http://"), timeout=30)
            for trace in range(first, first + 10_000):
                try:
                    connection.request("POST", "/v1/traces", body_of("a", "b", trace=trace), {"Content-Type": PROTOBUF})
                    answer = connection.getresponse()
                    answer.read()
                except (OSError, http.client.HTTPException):
                    return
                assert answer.status == 200
                acknowledged.append(trace)
                started.set()

        with ThreadPoolExecutor(8) as senders:
            running = [senders.submit(send, 1 + place * 10_000) for place in range(8)]
            assert started.wait(30)
            time.sleep(1)
            collector.kill()
            for each in running:
                each.result()

    assert len(acknowledged) > 20
    present = {trace_id for trace_id, _ in landed(migrated_url)}
    assert {f"{trace:032x}" for trace in acknowledged} <= present


def test_a_database_that_crashes_is_waited_for_and_keeps_what_was_acknowledged() -> None:
    with throwaway_postgres() as server:
        url = server.url("postgres")
        with opened(url) as engine:
            upgrade(engine)
        with collecting(url) as collector:
            before = collector.post(body_of("before", trace=1))
            server.stop("immediate")
            away = [collector.post(body_of("away", trace=2)) for _ in range(3)]
            sick = collector.get("/healthz")
            retrying = threading.Thread(target=_start_soon, args=(server.start,))
            retrying.start()
            exported = _export(collector)
            retrying.join()
            again = _until_taken(collector, body_of("again", trace=3))
            well = collector.get("/healthz")
            rows = landed(url)
            _, notes = _ended(collector)

    assert before.status == 200
    assert {answer.status for answer in away} == {503}
    assert {retry_after(answer) for answer in away} == {2}
    assert (sick.status, sick.json) == (503, {"status": "unavailable"})
    assert exported is SpanExportResult.SUCCESS
    assert (again.status, well.status) == (200, 200)
    assert {row.name for row in rows.values()} == {"before", "exported", "again"}
    assert "The database takes no spans" in notes
    assert "The database takes spans again" in notes


def _start_soon(start: Callable[[], None]) -> None:
    time.sleep(1.5)
    start()


def _export(collector: Collector) -> SpanExportResult:
    """Send a span as a real exporter does, which tries again when it is told to."""
    results: list[SpanExportResult] = []

    class Noting(OTLPSpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            results.append(super().export(spans))
            return results[-1]

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(Noting(f"{collector.url}/v1/traces", timeout=40)))
    with provider.get_tracer("scope").start_as_current_span("exported"):
        pass
    provider.shutdown()
    return results[0]


def _until_taken(collector: Collector, body: bytes) -> Answer:
    deadline = time.monotonic() + 30
    while (answer := collector.post(body)).status == 503 and time.monotonic() < deadline:
        time.sleep(retry_after(answer))
    return answer


def _ended(collector: Collector) -> tuple[str, str]:
    collector.process.send_signal(signal.SIGTERM)
    return collector.process.communicate(timeout=60)


def test_more_than_there_is_room_for_is_shed_and_the_rest_is_landed(migrated_url: str) -> None:
    bodies = {trace: body_of("large", trace=trace, attributes={"text": "x" * (MIB // 3)}) for trace in range(1, 13)}
    with (
        collecting(migrated_url, "--max-request-mib", "1", "--max-waiting-mib", "2") as collector,
        ThreadPoolExecutor(len(bodies)) as senders,
    ):
        with landing_held_up(migrated_url):
            sent = {trace: senders.submit(collector.post, body) for trace, body in bodies.items()}
            shed = _first_done(sent.values(), 12 - 6)
        answers = {trace: future.result() for trace, future in sent.items()}

    assert {answer.status for answer in shed} == {503}
    assert {retry_after(answer) for answer in shed} == {1}
    taken = {trace for trace, answer in answers.items() if answer.status == 200}
    assert 0 < len(taken) < 12
    assert {int(trace_id, 16) for trace_id, _ in landed(migrated_url)} == taken


def _first_done(futures: Iterable[Future[Answer]], count: int) -> list[Answer]:
    """Wait until so many requests are answered and return their answers."""
    deadline = time.monotonic() + 30
    futures = list(futures)
    while len(done := [future.result() for future in futures if future.done()]) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return done


def test_many_requests_are_landed_by_few_transactions(migrated_url: str) -> None:
    with collecting(migrated_url) as collector, ThreadPoolExecutor(20) as senders:
        with landing_held_up(migrated_url):
            sent = [senders.submit(collector.post, body_of("a", trace=trace)) for trace in range(1, 21)]
            time.sleep(1)
        assert {future.result().status for future in sent} == {200}
        stopped = collector.end()

    assert (stopped["requests"], stopped["new"]) == (20, 20)
    assert stopped["transactions"] < 10
    assert len(landed(migrated_url)) == 20


def test_a_signal_lets_what_is_under_way_finish_and_takes_no_more(migrated_url: str) -> None:
    with collecting(migrated_url) as collector, ThreadPoolExecutor(2) as senders:
        with landing_held_up(migrated_url):
            waiting = [senders.submit(collector.post, body_of("late", trace=trace)) for trace in (1, 2)]
            time.sleep(0.5)
            collector.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            with pytest.raises(OSError, match=r"refused|reset|closed"):
                collector.get("/healthz")
        statuses = [future.result().status for future in waiting]
        out, err = collector.process.communicate(timeout=60)

    assert statuses == [200, 200]
    assert collector.process.returncode == 0, err
    assert '"stopped"' in out
    assert len(landed(migrated_url)) == 2


def test_a_request_that_the_database_refuses_costs_no_other(migrated_url: str) -> None:
    with opened(migrated_url) as engine, engine.begin() as connection:
        refuse = "ALTER TABLE stepacc.otel_spans ADD CONSTRAINT no_poison CHECK (name <> 'poison')"
        connection.execute(sa.text(refuse))
    with collecting(migrated_url) as collector, ThreadPoolExecutor(3) as senders:
        names = ["good", "poison", "fine"]
        with landing_held_up(migrated_url):
            sent = [senders.submit(collector.post, body_of(name, trace=n)) for n, name in enumerate(names, start=1)]
            time.sleep(0.5)
        answers = [future.result() for future in sent]

    assert [answer.status for answer in answers] == [200, 400, 200]
    assert b"no_poison" in answers[1].body
    assert {row.name for row in landed(migrated_url).values()} == {"good", "fine"}
