"""From runs to a suggestion: what they share, what is optional, and where it stands."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from stepacc_core.errors import ConfigError
from stepacc_core.metrics.step_accuracy import step_accuracy
from stepacc_core.names import StepKind
from stepacc_core.suggest.arguments import common_arguments
from stepacc_core.suggest.consensus import Thresholds, find_consensus
from stepacc_core.suggest.optional import OptionalStep, find_optional
from stepacc_core.suggest.order import Evidence, Label
from stepacc_core.suggest.runs import Key, Run, key_of
from stepacc_core.suggest.suggestion import Suggested, SuggestedElement, Suggestion, Unsteady
from stepacc_core.suggest.written import Elements


@dataclass(frozen=True, slots=True)
class SuggestSettings:
    """What counts as usual.

    Args:
        share: a step in fewer than this share of the runs is optional or left out.
        optional_share: a step in fewer than this share is left out altogether.
        varies_from: of the runs with two steps, the share in which the less usual order must occur for it to vary.
        parallel_from: of the runs with two steps, the share in which they must have run at the same time.

    Raises:
        ConfigError: a share is not from 0 to 1, or the second exceeds the first.
    """

    share: float = 0.5
    optional_share: float = 0.2
    varies_from: float = 0.15
    parallel_from: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        for name in self.__slots__:
            value = getattr(self, name)
            if not 0 < value <= 1:
                msg = f"`{name}` is {value!r}; give a share of the runs, above 0 and at most 1."
                raise ConfigError(msg, name)
        if self.optional_share > self.share:
            msg = f"`optional_share` is {self.optional_share}, above `share`, {self.share}; give at most that."
            raise ConfigError(msg, "optional_share")


DEFAULTS = SuggestSettings()


def suggest(runs: Sequence[Run], settings: SuggestSettings = DEFAULTS) -> Suggestion:
    """Suggest what a task's runs should do, from good ones.

    Raises:
        ConfigError: there is no run, or no step is in enough of them.
    """
    if not runs:
        msg = "There is no run to learn from; give at least one, and better twenty."
        raise ConfigError(msg)
    names = _names(runs)
    thresholds = Thresholds(settings.share, settings.varies_from, settings.parallel_from)
    elements, evidence = find_consensus(runs, names, thresholds)
    if not elements:
        msg = f"No step is in {settings.share:.0%} of the {len(runs)} runs, so there is nothing to suggest."
        raise ConfigError(msg)
    optional = find_optional(elements, evidence, settings.optional_share)
    made = tuple(_suggested(elements, optional, evidence, names))
    unsteady = tuple(
        Unsteady(names[step.key], _kind(step.key), step.support)
        for step in optional
        if step.before is None and step.within is None
    )
    suggestion = Suggestion(made, len(runs), 0, unsteady)
    expected = suggestion.expected_steps()
    return replace(suggestion, fitting=sum(step_accuracy(expected, run.steps).score == 1 for run in runs))


def _names(runs: Sequence[Run]) -> dict[Key, str]:
    """Return how each step is written: as most runs write it."""
    written: dict[Key, Counter[str]] = {}
    for run in runs:
        for step in run.steps:
            written.setdefault(key_of(step), Counter())[step.name] += 1
    return {key: min(names, key=lambda name: (-names[name], name)) for key, names in written.items()}


def _suggested(
    elements: Elements, optional: Sequence[OptionalStep], evidence: Evidence, names: Mapping[Key, str]
) -> Iterator[SuggestedElement]:
    """Yield the elements, each optional step before or within the one to which it belongs."""
    for index, members in enumerate([*elements, []]):
        for step in optional:
            if step.before == index:
                yield SuggestedElement((_optional(step, names),))
        if members:
            within = tuple(_optional(step, names) for step in optional if step.within == index)
            shared = tuple(_shared(label, evidence, names) for label in members)
            yield SuggestedElement((*shared, *within), _reason(members, evidence) if len(shared + within) > 1 else "")


def _shared(label: Label, evidence: Evidence, names: Mapping[Key, str]) -> Suggested:
    calls = [
        run.steps[places[label]] for run, places in zip(evidence.runs, evidence.places, strict=True) if label in places
    ]
    return Suggested(names[label[0]], _kind(label[0]), len(calls), arguments=common_arguments(calls))


def _optional(step: OptionalStep, names: Mapping[Key, str]) -> Suggested:
    return Suggested(names[step.key], _kind(step.key), step.support, optional=True)


def _reason(members: Sequence[Label], evidence: Evidence) -> str:
    orders = [evidence.order(first, second) for first, second in combinations(members, 2)]
    if any(order.is_parallel(evidence.parallel_from) for order in orders):
        return "they run at the same time"
    return "their order varies"


def _kind(key: Key) -> StepKind:
    return "AGENT" if key[0] == "AGENT" else "TOOL"
