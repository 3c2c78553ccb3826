"""The settings of the consolidator that a recording has: what a simulation writes of its own, and what replays take.

Whatever the policies of a scenario do not say is as recorded.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from karpool.recording.settings import Settings
from karpool.virtual.scenario import Decisions, DrainPaceLimits, Policy, Scenario, Timings
from karpool.wire.merge_patch import merged
from karpool.wire.objects import decode_value, encode_value

_TIMINGS: Final = ("poll", "patience", "validation", "batch_idle", "batch_most")
_POLICY: Final = frozenset(
    ("decisions", "pace", "scheduler", "disruption", "nodeGroups", "repairPolicies", "compactor")
)


def settings_of_policy(policy: Policy, scenario: Scenario) -> Settings:
    """The settings of a simulated run; changes of pools are in its NodePools already."""
    plain: Settings = {
        "decisions": _all_of(policy.decisions),
        "pace": _all_of(policy.pace),
        "scheduler": policy.scheduler or scenario.scheduler,
        "disruption": policy.disruption,
    }
    if policy.repair_policies:
        plain["repairPolicies"] = _plain(policy.repair_policies)
    if policy.compactor is not None:
        plain["compactor"] = _plain(policy.compactor)
    timings = _all_of(scenario.timings)
    return {"policy": plain, "timings": {name: timings[_key(Timings, name)] for name in _TIMINGS}}


def _all_of(part: Decisions | DrainPaceLimits | Timings) -> dict[str, Any]:
    """All fields, also those that are as they usually are: what is usual changes from version to version."""
    fields = msgspec.structs.fields(part)
    return {field.encode_name: _plain(getattr(part, field.name)) for field in fields}


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=encode_value)


def _key(kind: type, name: str) -> str:
    return next(field.encode_name for field in msgspec.structs.fields(kind) if field.name == name)


def recorded_policy(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """The policy of a recording as a scenario would write it; what this version does not know is left out."""
    written = (settings or {}).get("policy")
    if not isinstance(written, dict):
        return {}
    kept: dict[str, Any] = {}
    for name in sorted(_POLICY & written.keys()):
        value = written[name]
        known = _KNOWN.get(name)
        if known is not None and isinstance(value, dict):
            value = {key: entry for key, entry in value.items() if _fits(known, {key: entry})}
        if _fits(Policy, {name: value}):
            kept[name] = value
    return kept


_KNOWN: Final[dict[str, type]] = {"decisions": Decisions, "pace": DrainPaceLimits}


def _fits(kind: type, value: Any) -> bool:
    try:
        msgspec.convert(value, type=kind, dec_hook=decode_value, str_keys=True)
    except msgspec.ValidationError:
        return False
    return True


def recorded_timings(settings: Mapping[str, Any] | None) -> Timings:
    """How often the recorded controller looked and how long it waited."""
    written = (settings or {}).get("timings")
    if not isinstance(written, dict):
        return Timings()
    names = {_key(Timings, name) for name in _TIMINGS}
    kept = {key: value for key, value in written.items() if key in names and _fits(Timings, {key: value})}
    return msgspec.convert(kept, type=Timings, dec_hook=decode_value, str_keys=True)


def beneath(policy: Policy, own: Any, recorded: Mapping[str, Any]) -> Policy:
    """A policy as recorded, but for what a scenario writes of it."""
    if not recorded:
        return policy
    plain = merged(dict(recorded), own if isinstance(own, dict) else {})
    return msgspec.convert(plain, type=Policy, dec_hook=decode_value, str_keys=True)
