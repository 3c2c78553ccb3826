"""What becomes of a node, in sentences: in a whole plan, and alone in the cluster of today."""

from collections.abc import Iterable, Iterator

from karpool.model.reasons import Reason
from karpool.report.formatting import count, names_of, per_hour, sentence
from karpool.report.plans.document import AlonePart, ExplanationDocument, InPlanPart
from karpool.report.reason_words import REASON_WORDS


def explain_words(explanation: ExplanationDocument) -> tuple[str, ...]:
    """One sentence about the plan, if one was made, one about today, and what can be done about that."""
    node, alone = explanation.node.name, explanation.alone
    planned = () if explanation.in_plan is None else (_planned(explanation.in_plan, node),)
    today = () if alone is None else (_alone(alone, explanation), *_actions(alone))
    return (*planned, *today)


def _actions(part: AlonePart) -> Iterator[str]:
    """What the reference suggests for each reason for which the node stays, but for those that pass by themselves."""
    if part.verdict == "keep":
        for code in dict.fromkeys(reason.code for reason in part.reasons):
            words = REASON_WORDS.get(code)
            if words is not None and not words.action.startswith("Nothing to do"):
                yield f"What to do: {words.action}"


def _planned(part: InPlanPart, node: str) -> str:
    if part.step is not None:
        why = _told(part.reasons, node).replace(f" (step {part.step})", "")
        return f"In the plan it goes in step {part.step} of {part.steps}: {why}."
    after = f"stays after {count(part.steps, 'step')}" if part.steps else "stays, as there is no step"
    return f"In the plan it {after}: {_told(part.reasons, node)}."


def _alone(part: AlonePart, explanation: ExplanationDocument) -> str:
    node, group = explanation.node.name, explanation.group
    if part.verdict == "keep":
        others = () if group is None else tuple(name for name in group.nodes if name != node)
        together = f"; it could go together with {names_of(others)}" if others else ""
        return f"Alone, today, it stays: {_told(part.reasons, node)}{together}."
    could = "go" if part.verdict == "delete" else "be replaced"
    return f"Alone, today, it could {could} and save {per_hour(part.savings_per_hour)}."


def _told(reasons: Iterable[Reason], node: str) -> str:
    return "; ".join(f"{reason.code}: {sentence(reason, node)}" for reason in reasons)
