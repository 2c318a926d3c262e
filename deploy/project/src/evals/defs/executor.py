"""Who takes the steps of a run: a setting of this project, which no source knows of.

`EVALS_EXECUTOR` names it where the code is loaded: the process of the run itself (`in_process`, where nothing is
said), a process for each step (`multiprocess`), workers of Celery (`celery`) or a pod for each step (`k8s`).
"""

import os
from collections.abc import Callable
from importlib.resources import files

import dagster as dg
import yaml


def _celery() -> dg.ExecutorDefinition:
    from dagster_celery import celery_executor  # noqa: PLC0415 (installed only where it is used)

    # The workers are started with the same file, so that both sides agree on it.
    settings = yaml.safe_load(files("evals").joinpath("celery.yaml").read_text())
    return celery_executor.configured(settings["execution"]["config"], name="celery")


def _k8s() -> dg.ExecutorDefinition:
    from dagster_k8s import k8s_job_executor  # noqa: PLC0415 (as above)

    executor: dg.ExecutorDefinition = k8s_job_executor
    return executor


EXECUTORS: dict[str, Callable[[], dg.ExecutorDefinition]] = {
    "in_process": lambda: dg.in_process_executor,
    "multiprocess": lambda: dg.multiprocess_executor,
    "celery": _celery,
    "k8s": _k8s,
}

defs = dg.Definitions(executor=EXECUTORS[os.environ.get("EVALS_EXECUTOR", "in_process")]())
