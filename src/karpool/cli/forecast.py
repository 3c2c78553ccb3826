"""`karpool plan --forecast`: what comes of the plan once kube-scheduler chooses the places of pods."""

from msgspec.structs import replace

from karpool.cli.inputs.cluster_source import LoadedCluster
from karpool.cli.options.decision_options import Choices
from karpool.cli.progress import ReportProgress
from karpool.disruption.plan import Plan
from karpool.disruption.settings import Scoring
from karpool.report.plans.document import PlanDocument
from karpool.report.plans.forecast_parts import forecast_part
from karpool.virtual.applied_plan import forecast


def with_forecast(
    document: PlanDocument, planned: Plan, cluster: LoadedCluster, choices: Choices, report: ReportProgress
) -> PlanDocument:
    """The document with what the plan comes to on a virtual cluster."""
    found = forecast(
        planned,
        cluster.objects,
        cluster.catalog,
        cluster.settings,
        ignore_dra_requests=choices.options.ignore_dra_requests,
        progress=lambda done, most: report("Carrying the plan out on a virtual cluster", done, most),
    )
    foreseen = cluster.settings.scheduler is not Scoring.ANY
    return replace(document, forecast=forecast_part(planned, found, foreseen=foreseen))
