"""A what-if as YAML, to be applied or simulated."""

import shlex
from collections.abc import Sequence
from typing import Any, Final

import yaml

from karpool.disruption.what_if.exports import Export, export, scenario
from karpool.disruption.what_if.knob import Knob
from karpool.disruption.what_if.question import Question

_SNAPSHOT: Final = "cluster.json.zst"


def patch_files(question: Question, knobs: Sequence[Knob]) -> dict[str, str]:
    """By NodePool: a merge patch, with the command that applies it; nothing for pools that stay as they are."""
    return _patch_files(export(question, knobs))


def changes_text(question: Question, knobs: Sequence[Knob]) -> str:
    """All that has to be changed: the patches, or without any the options of the controller alone."""
    exported = export(question, knobs)
    files = _patch_files(exported)
    return "---\n".join(files.values()) or "\n".join(["# NodePools stay as they are.", *_beside(exported)])


def _patch_files(exported: Export) -> dict[str, str]:
    beside = _beside(exported)
    return {
        name: "\n".join([f"# kubectl patch nodepool {name} --type merge --patch-file FILE", *beside, as_yaml(patch)])
        for name, patch in exported.patches.items()
    }


def _beside(exported: Export) -> list[str]:
    """What patches do not say, as comments."""
    options = [f"# Also: karpool run {' '.join(exported.options)}"] if exported.options else []
    return options + [f"# By hand: {_comment(words)}" for words in exported.by_hand]


def scenario_file(question: Question, knobs: Sequence[Knob], source: Sequence[str] = ()) -> str:
    """A scenario for `karpool simulate`, beside a snapshot; `source`: the options that name its cluster."""
    take = shlex.join(["karpool", "snapshot", *source, "-o", _SNAPSHOT])
    head = f"# {_comment(take)} && karpool simulate FILE"
    return f"{head}\n{as_yaml(scenario(question, knobs, _SNAPSHOT))}"


def _comment(text: str) -> str:
    """Text that stays on its line, whatever it says."""
    return "".join(character if character.isprintable() else " " for character in text)


def as_yaml(value: Any) -> str:
    """A value as YAML, with its fields in their order."""
    written: str = yaml.safe_dump(value, sort_keys=False, width=100)
    return written
