"""Moments that annotations say: one that has not come yet was written by a wrong clock, or by somebody else."""

from datetime import datetime, timedelta
from typing import Final

from karpool.model.annotations import AnnotationError, annotation_path
from karpool.wire.problems import Flaw

AHEAD: Final = timedelta(hours=1)
"""Clocks may differ by less."""


def refuse_ahead(annotation: str, now: datetime, *moments: datetime | None) -> None:
    """Raise an AnnotationError for a moment that is far ahead: waiting for it would stop a pool for good."""
    for moment in moments:
        if moment is not None and moment - now > AHEAD:
            message = f"is about {moment:%Y-%m-%d %H:%M}, which is still to come"
            raise AnnotationError([Flaw(annotation_path(annotation), "Annotation", message)])
