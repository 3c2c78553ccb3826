"""The public trace openb, cluster-trace-gpu-v2023 of Alibaba: nodes.csv and pods.csv in a directory.

It says when pods came and went and what they asked for, and not where they ran. So they are placed here as the default
scheduler does: each on the node that it leaves emptiest. A share of a GPU counts in thousandths; that a share must lie
on one GPU is not looked at. It has no prices: those written are what public clouds ask, about.
"""

import csv
import heapq
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal, NamedTuple

import numpy as np

from karpool.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ON_DEMAND, OS, ZONE
from karpool.model.node import Node, NodeStatus
from karpool.model.pod import Container, Pod, PodSpec, Resources
from karpool.recording.imports.imported_file import ImportedFile, Report
from karpool.recording.imports.lifetimes import Lifetime, steps
from karpool.recording.prices import offer_of
from karpool.recording.records import EVICTION
from karpool.wire.objects import Condition, Metadata
from karpool.wire.problems import InputError
from karpool.wire.quantity import Quantity, parse_quantity
from karpool.wire.sources import MOST_BYTES

SOURCE: Final = "openb"
GPU_SHARES: Final = "openb/gpu-milli"
PLACE: Final = "openb-a"
START: Final = datetime(2023, 1, 1, tzinfo=UTC)
"""The trace counts seconds from its own beginning, and does not say when that was."""
_PER_CPU, _PER_GIBIBYTE = 0.033, 0.0044
_PER_GPU: Final = {"": 0.0, "P100": 0.6, "T4": 0.35, "V100M16": 1.3, "V100M32": 1.6, "A10": 0.75, "G2": 0.9, "G3": 2.2}
_DEAREST: Final = 2.2
_PODS: Final = 110
_LONGEST: Final = 20 * 366 * 86400
_MOST: Final = 10**9
_DIGITS: Final = 12
_DAY: Final = timedelta(days=1)
_ENDS: Final[dict[str, Literal["Succeeded", "Failed"]]] = {"Succeeded": "Succeeded", "Failed": "Failed"}
_NODE_FIELDS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_FIELDS: Final = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos", "pod_phase",
    "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip


class TraceRow(NamedTuple):
    """A line of a table, and where it is."""

    place: str
    line: int
    cells: dict[str, str]

    def whole(self, name: str, most: int = _MOST) -> int:
        """A cell that counts something."""
        text = self.cells[name]
        if not text.isascii() or not text.isdigit() or len(text) > _DIGITS or int(text) > most:
            raise InputError.at(
                self.place, f"line {self.line}: {name} is {text[:40]!r}, which is no number of that kind"
            )
        return int(text)


class TraceNode(NamedTuple):
    """What a node has."""

    name: str
    cpu: int
    memory: int
    gpus: int
    model: str

    @property
    def kind(self) -> str:
        gpus = f"-{self.gpus}x{self.model.lower()}" if self.gpus else ""
        return f"c{self.cpu // 1000}-m{self.memory // 1024}{gpus}"

    @property
    def price(self) -> float:
        per_gpu = _PER_GPU.get(self.model, _DEAREST)
        return round(self.cpu / 1000 * _PER_CPU + self.memory / 1024 * _PER_GIBIBYTE + self.gpus * per_gpu, 4)


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """A pod of the trace, in seconds of it."""

    row: TraceRow
    born: int
    ran: int | None
    ended: int | None
    asked: tuple[int, int, int]


def import_openb(sources: Sequence[str], file: ImportedFile, report: Report, *, at_once: bool = False) -> None:
    """The trace in a directory; `at_once`: all pods of it are there from the beginning on, for a day."""
    if len(sources) != 1:
        raise InputError.at("SOURCE", "of openb is one directory, with nodes.csv and pods.csv")
    folder = Path(sources[0])
    machines = [_machine(row) for row in rows(folder / "nodes.csv", _NODE_FIELDS)]
    spans = sorted((_span(row) for row in rows(folder / "pods.csv", _POD_FIELDS)), key=lambda span: span.born)
    if at_once:
        spans = [TraceSpan(span.row, 0, 0, None, span.asked) for span in spans]
    if not machines or not spans:
        raise InputError.at(str(folder), "has a trace without nodes or without pods")
    observer = file.begin(START, SOURCE)
    file.lacks(
        ("NodePool", "NodeClaim"),
        "the trace has no NodePools: name some in a scenario, or nodes stay as they are",
        START,
    )
    file.lacks((EVICTION,), "the trace does not say which pods were evicted", START)
    file.note("where pods ran is a guess, each on the emptiest node, and so are prices")
    nodes = [_node(machine) for machine in machines]
    prices = {offer_of(node.metadata.labels): machine.price for node, machine in zip(nodes, machines, strict=True)}
    observer.priced(prices, START)
    for node in nodes:
        observer.saw("Node", node, START)

    length = _DAY if at_once else timedelta(seconds=max(span.ended or span.born for span in spans))
    lives = _placed(spans, machines, alone=at_once)
    for number, step in enumerate(steps(lives, observer, START)):
        step.tell()
        report("Reading the trace openb", number, None)
    observer.alive(max(START + length, observer.history.moment(observer.history.time)))


# -- tables ------------------------------------------------------------------------------------------------------


def rows(path: Path, fields: Sequence[str]) -> Iterator[TraceRow]:
    """The lines of a table that has these columns."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES)
        table = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        missing = [name for name in fields if name not in (table.fieldnames or ())]
        if missing:
            raise InputError.at(str(path), f"has no column {missing[0]}; it is not a table of openb")
        for cells in table:
            known = {name: cells[name] for name in fields}
            if None in known.values():
                raise InputError.at(str(path), f"line {table.line_num} is cut short")
            yield TraceRow(str(path), table.line_num, known)
    except FileNotFoundError as error:
        raise InputError.at(str(path), "does not exist; the directory of openb has nodes.csv and pods.csv") from error
    except OSError as error:
        raise InputError.at(str(path), f"cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError.at(str(path), f"is no table: {error}") from error


def _machine(row: TraceRow) -> TraceNode:
    name = row.cells["sn"]
    return TraceNode(name, row.whole("cpu_milli"), row.whole("memory_mib"), row.whole("gpu"), row.cells["model"])


def _span(row: TraceRow) -> TraceSpan:
    born, ended = row.whole("creation_time", _LONGEST), row.whole("deletion_time", _LONGEST)
    ran = None if not row.cells["scheduled_time"] else max(born, math.floor(row.whole("scheduled_time", _LONGEST)))
    count = row.whole("num_gpu")
    shares = row.whole("gpu_milli") if count == 1 else count * 1000
    return TraceSpan(row, born, ran, max(ended, ran or born), (row.whole("cpu_milli"), row.whole("memory_mib"), shares))


# -- objects -----------------------------------------------------------------------------------------------------


def _node(machine: TraceNode) -> Node:
    labels = {
        HOSTNAME: machine.name,
        INSTANCE_TYPE: machine.kind,
        ZONE: PLACE,
        ARCH: "amd64",
        OS: "linux",
        CAPACITY_TYPE: ON_DEMAND,
    }
    room = {"cpu": f"{machine.cpu}m", "memory": f"{machine.memory}Mi", "pods": str(_PODS)}
    if machine.gpus:
        room[GPU_SHARES] = str(machine.gpus * 1000)
    amounts = {name: parse_quantity(text) for name, text in room.items()}
    ready = Condition(type="Ready", status="True", last_transition_time=START)
    status = NodeStatus(capacity=amounts, allocatable=amounts, conditions=(ready,))
    return Node(metadata=Metadata(name=machine.name, labels=labels, creation_timestamp=START), status=status)


def _pod(span: TraceSpan, node: str) -> Pod:
    cpu, memory, shares = span.asked
    requests: dict[str, Quantity] = {"cpu": parse_quantity(f"{cpu}m"), "memory": parse_quantity(f"{memory}Mi")}
    if shares:
        requests[GPU_SHARES] = parse_quantity(str(shares))
    cells = span.row.cells
    meta = Metadata(name=cells["name"], namespace=SOURCE, labels={"qos": cells["qos"]})
    return Pod(
        metadata=meta, spec=PodSpec(node_name=node, containers=(Container(resources=Resources(requests=requests)),))
    )


def _placed(spans: Sequence[TraceSpan], machines: Sequence[TraceNode], *, alone: bool) -> Iterator[Lifetime]:
    """Each pod on the node that has the greatest part of its CPU and memory left with it, or on none."""
    whole = np.array([(m.cpu, m.memory, m.gpus * 1000, _PODS) for m in machines], dtype=float)
    room = whole.copy()
    ends: list[tuple[float, int, tuple[int, ...]]] = []
    for span in spans:
        while ends and ends[0][0] <= span.born:
            _, at, asked = heapq.heappop(ends)
            room[at] += asked
        wants = (*span.asked, 1)
        allowed = (room >= wants).all(axis=1)
        if span.ran is None or not allowed.any():
            yield _life(span, "", runs=False)
            continue
        left = ((room - wants) / whole.clip(1))[:, :2].mean(axis=1)
        chosen = int(np.where(allowed, left, -1.0).argmax())
        room[chosen] -= wants
        if not alone and span.ended is not None:
            heapq.heappush(ends, (span.ended, chosen, wants))
        yield _life(span, machines[chosen].name, runs=True)


def _life(span: TraceSpan, node: str, *, runs: bool) -> Lifetime:
    ended = None if span.ended is None else timedelta(seconds=span.ended)
    phase = _ENDS.get(span.row.cells["pod_phase"]) if runs and ended is not None else None
    ran = timedelta(seconds=span.ran) if runs and span.ran is not None else None
    return Lifetime(_pod(span, node), timedelta(seconds=span.born), ran, ended, phase or "")
