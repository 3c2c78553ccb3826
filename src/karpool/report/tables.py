"""A plan or an explanation as tables in a terminal; rich is loaded only when there is something to print."""

import os
from collections.abc import Mapping
from typing import TextIO

from karpool.report.document import ExplanationDocument, PlanDocument


def is_plain(file: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to leave out colours and symbols: not a terminal, not Unicode, or asked for."""
    unicode = (getattr(file, "encoding", None) or "").lower().replace("-", "") == "utf8"
    return bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb" or not file.isatty() or not unicode


def show_plan(
    plan: PlanDocument, file: TextIO, *, every_node: bool = False, plain: bool | None = None, width: int | None = None
) -> None:
    """Print a plan; nodes that stay are counted by reason unless `every_node` asks for each."""
    from karpool.report.plan_table import print_plan
    from karpool.report.terminal import Screen

    print_plan(plan, Screen(file, plain=is_plain(file) if plain is None else plain, width=width), every_node=every_node)


def show_explanation(
    explanation: ExplanationDocument, file: TextIO, *, plain: bool | None = None, width: int | None = None
) -> None:
    """Print everything about one node."""
    from karpool.report.explain_table import print_explanation
    from karpool.report.terminal import Screen

    print_explanation(explanation, Screen(file, plain=is_plain(file) if plain is None else plain, width=width))
