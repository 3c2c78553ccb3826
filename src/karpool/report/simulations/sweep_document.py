"""A sweep as other programs read it: every trial, every setting with its intervals, and what is on the front.

The same inputs and seeds give the same bytes, wherever the trials ran.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from karpool.disruption.what_if.exports import export
from karpool.report.document_part import API_VERSION, DocumentPart
from karpool.report.plans.document import PricesPart
from karpool.report.price_words import prices_parts
from karpool.sweep.dimensions import knobs_of
from karpool.sweep.driver import Sweep
from karpool.sweep.points import MEASURES, Point
from karpool.sweep.trial import SweepInput, TrialResult
from karpool.virtual.curves import seconds
from karpool.virtual.statistics import Estimate

_DIGITS: Final = 6


class TrialPart(DocumentPart, frozen=True, kw_only=True):
    number: int
    """Of the setting."""
    setting: dict[str, str]
    input: str
    seed: int
    result: TrialResult


class MeasurePart(DocumentPart, frozen=True, kw_only=True):
    """A mean over seeds, and its 95% interval; null with one seed."""

    mean: float
    low: float | None
    high: float | None


class ChangePart(DocumentPart, frozen=True, kw_only=True):
    """What has to be changed in an input so that a setting holds."""

    input: str
    patches: dict[str, dict[str, Any]]
    """Merge patches by NodePool."""
    options: tuple[str, ...]
    """Of `karpool run`."""
    by_hand: tuple[str, ...]


class SettingPart(DocumentPart, frozen=True, kw_only=True):
    number: int
    setting: dict[str, str]
    seeds: int
    on_front: bool
    stopped: bool
    """Whether its further seeds were left out: another setting is certainly better."""
    pods_wait: bool
    """Whether pods wait so much longer than under another setting that it is not on the front."""
    waiting_share: float
    measures: dict[str, MeasurePart]
    changes: tuple[ChangePart, ...] = ()
    """For settings on the front."""


class SweepInputPart(DocumentPart, frozen=True, kw_only=True):
    name: str
    policy: str
    """The policy that settings change."""
    length_seconds: float
    gap_seconds: float | None = None
    """Of a recording: how long of it nothing was seen, so that demand stayed as it was."""


class SweepDocument(DocumentPart, frozen=True, kw_only=True):
    api_version: str = API_VERSION
    kind: str = "Sweep"
    inputs: tuple[SweepInputPart, ...]
    method: str
    seed: int
    seeds: int
    complete: bool
    """Whether all trials were done."""
    prices: tuple[PricesPart, ...]
    front: tuple[int, ...]
    """The numbers of the settings that no other beats, the cheapest first."""
    settings: tuple[SettingPart, ...]
    trials: tuple[TrialPart, ...]


def sweep_document(sweep: Sweep, method: str, *, complete: bool) -> SweepDocument:
    points = sweep.points()
    front = sorted((point for point in points if point.on_front), key=lambda point: (point.cost, point.number))
    origins = [origin for entry in sweep.inputs for origin in entry.inputs.catalog.origins]
    return SweepDocument(
        inputs=tuple(map(_input, sweep.inputs)),
        method=method,
        seed=sweep.seeds[0],
        seeds=len(sweep.seeds),
        complete=complete,
        prices=prices_parts(tuple(dict.fromkeys(origins))),
        front=tuple(point.number for point in front),
        settings=tuple(_setting(point, sweep.inputs) for point in points),
        trials=tuple(_trials(sweep)),
    )


def _input(entry: SweepInput) -> SweepInputPart:
    length, demand = seconds(entry.inputs.scenario.length), entry.inputs.demand
    gaps = None if demand is None else sum(min(until, length) - since for since, until in demand.gaps if since < length)
    return SweepInputPart(name=entry.name, policy=entry.policy, length_seconds=length, gap_seconds=gaps)


def to_json(document: SweepDocument) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _trials(sweep: Sweep) -> list[TrialPart]:
    numbers = {setting: number for number, setting in enumerate(sweep.settings, 1)}
    return [
        TrialPart(
            number=numbers[trial.setting],
            setting=dict(trial.setting),
            input=sweep.inputs[trial.input].name,
            seed=trial.seed,
            result=timed.result,
        )
        for trial, timed in sorted(
            sweep.results.items(), key=lambda item: (numbers[item[0].setting], item[0].input, item[0].seed)
        )
    ]


def _setting(point: Point, inputs: Sequence[SweepInput]) -> SettingPart:
    return SettingPart(
        number=point.number,
        setting=dict(point.setting),
        seeds=point.seeds,
        on_front=point.on_front,
        stopped=point.stopped,
        pods_wait=point.waits,
        waiting_share=round(point.waiting, _DIGITS),
        measures=_measures(point.estimates),
        changes=tuple(_change(entry, point) for entry in inputs) if point.on_front else (),
    )


def _measures(estimates: Mapping[str, Estimate]) -> dict[str, MeasurePart]:
    names = {name: TrialResult.__struct_encode_fields__[TrialResult.__struct_fields__.index(name)] for name in MEASURES}
    return {names[name]: _measure(entry) for name, entry in estimates.items()}


def _measure(entry: Estimate) -> MeasurePart:
    low, high = (None if end is None else round(end, _DIGITS) for end in (entry.low, entry.high))
    return MeasurePart(mean=round(entry.mean, _DIGITS), low=low, high=high)


def _change(entry: SweepInput, point: Point) -> ChangePart:
    exported = export(entry.question(), knobs_of(point.setting))
    return ChangePart(
        input=entry.name,
        patches={name: dict(patch) for name, patch in exported.patches.items()},
        options=exported.options,
        by_hand=exported.by_hand,
    )
