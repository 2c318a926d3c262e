"""Ingest, score and gate a source once a day, in Airflow; docs/airflow.md says how it is set up.

stepacc has an environment of its own beside Airflow's: the tasks call its program, and nothing of it is imported here.
"""

import os
from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, CronDataIntervalTimetable

PROGRAM = os.environ.get("STEPACC_PROGRAM", "/opt/stepacc/bin/stepacc")
SOURCE = os.environ.get("STEPACC_SOURCE", "support_agent")
MIN_MEAN = os.environ.get("STEPACC_MIN_MEAN", "0.8")
_PARTITION = f"--source {SOURCE} --from {{{{ data_interval_start | ds }}}} --to {{{{ data_interval_start | ds }}}}"
"""The day that is over when its run becomes due. Airflow's `@daily` would give the day that has just begun."""

with DAG(
    dag_id="stepacc_daily",
    schedule=CronDataIntervalTimetable("0 1 * * *", timezone="UTC"),  # partitions are days of UTC
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    catchup=True,
    max_active_runs=4,
    default_args={
        "pool": "stepacc",  # at most as many tasks at once, over all DAGs, as the database is to serve
        "retries": 3,
        "retry_delay": timedelta(minutes=2),
        "retry_exponential_backoff": True,
        "execution_timeout": timedelta(hours=1),
        "env": {
            "STEPACC_DATABASE_URL": "{{ conn.stepacc_database.get_uri() }}",
            "STEPACC_REDACTION_KEY": "{{ conn.stepacc_redaction.password }}",
        },
        "append_env": True,
    },
):
    ingest = BashOperator(task_id="ingest", bash_command=f"{PROGRAM} ingest {_PARTITION}")
    materialize = BashOperator(task_id="materialize", bash_command=f"{PROGRAM} materialize {_PARTITION}")
    gate = BashOperator(
        task_id="gate",
        bash_command=f"{PROGRAM} gate {_PARTITION} --min-mean {MIN_MEAN}",
        retries=0,  # the scores are what they are
    )
    ingest >> materialize >> gate
