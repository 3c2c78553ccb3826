"""Label selectors of pods, namespaces and budgets."""

from collections.abc import Mapping
from typing import Literal

from karpool.wire.objects import Wire


class SelectorExpression(Wire):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None


class LabelSelector(Wire):
    """A label selector; the empty one matches everything, a missing one nothing."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[SelectorExpression, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            expression.matches(labels) for expression in self.match_expressions
        )
