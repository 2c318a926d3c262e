"""Every error of the tree carries a sentence and survives the way between processes."""

import pickle

import pytest

from stepacc_core import errors


def _tree(cls: type[errors.StepaccError]) -> list[type[errors.StepaccError]]:
    return [cls, *(below for child in cls.__subclasses__() for below in _tree(child))]


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    names = {cls.__name__ for cls in _tree(errors.StepaccError) if cls.__module__ == errors.__name__}

    assert {name for name in names if name not in (errors.__doc__ or "")} == set()


@pytest.mark.parametrize(
    "error",
    [
        errors.ScoringError(errors.FailureCode.NESTED_GROUP, "No."),
        errors.ConfigError("No.", "retry.max_retries"),
        errors.UnknownMetricError("No.", "metric_version"),
        *(cls("No.") for cls in _tree(errors.StepaccError) if cls.__init__ is errors.StepaccError.__init__),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_pickle(error: errors.StepaccError) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)

    assert type(copy) is type(error)
    assert copy == error
    assert str(copy) == "No."
    assert hash(copy) == hash(error)
