"""How figures and thresholds of the performance suite are read."""

import json
from pathlib import Path

from tests.conformance.performance import Bounds, Phase, bounds_of, changed_heaps, own_bounds, read_reports

SOURCE = """
    scaleOutReport, err := ReportScaleOutWithOutput(env, "Scale Out Test", 1000, 15*time.Minute, "scale_out")
    Expect(scaleOutReport.TotalPods).To(Equal(1000), "Should have 1000 total pods")
    Expect(scaleOutReport.TotalTime).To(BeNumerically("<", TotalTimeThreshold("basic/scaleOut", 2*time.Minute)),
        "Total scale-out time should be less than 2 minutes")
    Expect(scaleOutReport.TotalReservedCPUUtil).To(BeNumerically(">", CPUUtilThreshold("basic/scaleOut", 0.53)),
        "Average CPU utilization should be greater than 53%")
    Expect(scaleOutReport.KarpenterP95HeapMB).To(BeNumerically("<", HeapThreshold("basic/scaleOut", 120)),
        "Karpenter controller P95 live heap should be less than 120 MB during scale-out")
    largeReport, err := ReportConsolidationWithOutput(env, "Large", 1000, 700, nodes, 20*time.Minute, "large")
    Expect(largeReport.KarpenterP95HeapMB).To(BeNumerically("<", HeapThreshold("large/all", 720)), "")
"""
MEASURED = {
    "total_time": 112_926_652_967,
    "total_nodes": 156,
    "pods_disrupted": 3,
    "total_reserved_cpu_utilization": 0.5,
    "total_reserved_memory_utilization": 0.8429,
    "karpenter_p95_heap_mb": 237.26,
    "karpenter_p95_memory_mb": 329.33,
    "karpenter_avg_cpu_cores": 0.0765,
}
PHASE = Phase("scale_out", 112.9, 156, 3, cpu=0.5, memory=0.8429, heap=237.3, resident=329.3, cores=0.076)


def bounds(folder: Path) -> dict[str, Bounds]:
    path = folder / "basic_test.go"
    path.write_text(SOURCE, encoding="utf-8")
    return bounds_of([path])


def test_reports_come_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    for name, minute in (("scale_out", 7), ("consolidation", 9)):
        report = MEASURED | {"timestamp": f"2026-11-16T23:0{minute}:00Z"}
        (tmp_path / f"{name}_performance_report.json").write_text(json.dumps(report), encoding="utf-8")
    (tmp_path / "report.json").write_text("[]", encoding="utf-8")
    first, second = read_reports(tmp_path)
    assert (first, second.name) == (PHASE, "consolidation")


def test_thresholds_are_read_from_the_source_of_the_suite(tmp_path: Path) -> None:
    assert bounds(tmp_path) == {
        "scale_out": Bounds("basic/scaleOut", {"seconds": ("<", 120.0), "cpu": (">", 0.53), "heap": ("<", 120.0)}),
        "large": Bounds("large/all", {"heap": ("<", 720.0)}),
    }


def test_a_figure_beyond_its_threshold_is_known_in_either_direction(tmp_path: Path) -> None:
    assert bounds(tmp_path)["scale_out"].broken(PHASE) == {"cpu", "heap"}


def test_only_memory_has_another_threshold_for_karpool_and_never_a_smaller_one(tmp_path: Path) -> None:
    own = own_bounds(bounds(tmp_path))
    assert own["scale_out"].broken(PHASE) == {"cpu"}
    assert json.loads(changed_heaps(own)) == {"basic/scaleOut": {"heap_mb": 512}, "large/all": {"heap_mb": 720}}
