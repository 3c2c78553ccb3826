"""Many clusters: which they are, and a plan for each, side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace as changed

from karpool.cli.inputs.cluster_source import ReadCluster, decided_cluster, read_cluster_of
from karpool.cli.inputs.live_cluster import read_live
from karpool.cli.options.catalog_options import CatalogOpener
from karpool.cli.options.decision_options import Choices
from karpool.cli.options.input_options import KubeContext
from karpool.cli.options.worker_options import Where, workers_at
from karpool.cli.progress import ReportProgress
from karpool.cluster.node_groups import GroupOptions
from karpool.kube.errors import ApiError
from karpool.model.reading.loading import load
from karpool.wire.problems import InputError, one_line

if TYPE_CHECKING:
    from karpool.report.fleet_document import FleetRow

CONTEXTS: Final = "contexts"
_CONTEXT: Final = "context "
_CATALOG: Final = ("catalog.json", "catalog.yaml", "catalog.yml")
_ENDINGS: Final = tuple(f"{kind}{packed}" for kind in (".json", ".yaml", ".yml") for packed in ("", ".gz", ".zst"))
_NO_LIST: Final = "is no list: a line for each cluster, a path or `context NAME`"


class Member(NamedTuple):
    """One of the clusters: files, or a kube context."""

    name: str
    files: tuple[str, ...] = ()
    catalog: str | None = None
    kube: KubeContext | None = None
    carried: tuple[tuple[str, bytes], ...] = ()
    """The files themselves, for machines that do not have them: names and contents."""
    wrong: str = ""
    """Why it cannot even be tried."""


@dataclass(frozen=True, slots=True)
class FleetWork:
    """How every cluster is planned."""

    opener: CatalogOpener
    groups: GroupOptions
    choices: Choices
    steps: int | None
    bound: bool


def members_of(fleet: str, kube: KubeContext, where: Where) -> list[Member]:
    """The clusters that `--fleet` names."""
    path = Path(fleet)
    if fleet == CONTEXTS and not path.exists():
        found = list(_contexts(kube))
    elif path.is_dir():
        found = list(_in_directory(path))
    elif path.is_file():
        found = [_of_file(path)] if path.name.endswith(_ENDINGS) else list(_listed(path, kube))
    else:
        raise InputError.at("--fleet", f"there is no {fleet!r}; name a directory, a file with a list, or {CONTEXTS}")
    if not found and fleet == CONTEXTS and not path.exists():
        raise InputError.at(
            "--fleet", "there is no context in the kubeconfig; KUBECONFIG or --kubeconfig names another"
        )
    if not found:
        raise InputError.at("--fleet", f"{fleet} names no cluster")
    if where.local:
        return found
    if any(member.kube is not None for member in found):
        raise InputError.at("--on", "kube contexts are read from this machine; use --on local, or snapshots")
    return [_carried(member) for member in found]


def plan_members(
    members: Sequence[Member], where: Where, work: FleetWork, report: ReportProgress
) -> "tuple[list[FleetRow], bool]":
    """A row for each cluster, in their order, and whether all are there."""
    rows: dict[Member, FleetRow] = {}
    report("Planning clusters", 0, len(members))
    try:
        with workers_at(where, partial(plan_member, work), len(members), lost=_lost) as workers:
            for member, row in workers.run(members, lambda _member, _done: None):
                rows[member] = row
                report("Planning clusters", len(rows), len(members))
    except KeyboardInterrupt:
        return [rows[member] for member in members if member in rows], False
    except OSError as error:
        from karpool.workers.on_ray import RayError

        if not rows or not isinstance(error, RayError):
            raise
        rows = {member: _lost(member, str(error)) for member in members} | rows
    return [rows[member] for member in members], True


def _lost(member: Member, why: str) -> "FleetRow":
    """The row of a cluster whose worker ended, again and again."""
    from karpool.report.fleet_document import failed_row

    return failed_row(member.name, why)


def plan_member(work: FleetWork, member: Member, _: object) -> "FleetRow":
    """The plan of one cluster; one that cannot be read or planned, for whatever reason, is a row that says why."""
    from karpool.report.fleet_document import failed_row

    try:
        if not member.carried:
            return _planned(work, member)
        with TemporaryDirectory() as folder:
            return _planned_there(work, member, Path(folder))
    except (InputError, ApiError) as error:
        return failed_row(member.name, one_line(str(error)))
    except MemoryError:
        return failed_row(member.name, "there is not enough memory to plan it")
    except Exception as error:  # noqa: BLE001 - its row tells it, and one cluster keeps no others from their plans
        import structlog

        structlog.get_logger().debug("a cluster could not be planned", cluster=member.name, exc_info=error)
        return failed_row(member.name, one_line(f"{type(error).__name__}: {error}"))


def _planned_there(work: FleetWork, member: Member, folder: Path) -> "FleetRow":
    """The plan from files that came with the member; what is said of them names them as they are called at home."""

    def at_home(text: str) -> str:
        for path in (*member.files, *filter(None, [member.catalog])):
            text = text.replace(str(folder / Path(path).name), path)
        return text

    try:
        row = _planned(work, _unpacked(member, folder))
    except InputError as error:
        problem = error.problem
        raise InputError(changed(problem, file=at_home(problem.file), message=at_home(problem.message))) from error
    return changed(row, warnings=tuple(map(at_home, row.warnings)))


def _planned(work: FleetWork, member: Member) -> "FleetRow":
    from karpool.disruption.plan import Planner
    from karpool.report.fleet_document import fleet_row
    from karpool.report.plans.assemble import plan_document

    if member.wrong:
        raise InputError.at(member.name, member.wrong)
    opener, choices = work.opener, work.choices
    if member.catalog is not None and opener.source is None:
        opener = replace(opener, source=member.catalog)
    read = _read(member, choices)
    if not read.objects.nodes:
        raise InputError.at(member.name, "there is no node in it, so that nothing is to be planned")
    cluster = decided_cluster(read, opener, choices, work.groups)
    planner = Planner(cluster.context(choices), afresh=lambda: cluster.context(choices))
    planned = planner.plan(work.steps, bound=work.bound)
    return fleet_row(member.name, plan_document(planned, cluster.warnings, cluster.catalog))


def _read(member: Member, choices: Choices) -> ReadCluster:
    if member.kube is None:
        with Path("/dev/null").open("rb") as nothing:
            return read_cluster_of(load(member.files, stdin=nothing))
    namespace = choices.settings.brakes.pause_namespace
    devices = not choices.options.ignore_dra_requests
    return ReadCluster(read_live(member.kube, lambda *_: None, pause_namespace=namespace, devices=devices))


def _contexts(kube: KubeContext) -> Iterator[Member]:
    from karpool.kube.kubeconfig import context_names

    for name in context_names(kube.kubeconfig):
        yield Member(name, kube=KubeContext(name, kube.kubeconfig))


def _in_directory(folder: Path) -> Iterator[Member]:
    """Files and folders, each a cluster; `catalog.json` beside files is theirs."""
    catalog = _catalog_in(folder)
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in _CATALOG:
            continue
        if path.is_dir():
            yield _in_folder(path, path.name)
        elif path.name.endswith(_ENDINGS):
            yield Member(_bare(path.name), (str(path),), catalog)


def _of_file(path: Path) -> Member:
    """A snapshot alone: a fleet of one."""
    return Member(_bare(path.name), (str(path),), _catalog_in(path.parent))


def _in_folder(folder: Path, name: str) -> Member:
    files = [
        str(path) for path in sorted(folder.iterdir()) if path.name.endswith(_ENDINGS) and path.name not in _CATALOG
    ]
    wrong = "" if files else "there is no file with a cluster in it"
    return Member(name, tuple(files), _catalog_in(folder), wrong=wrong)


def _catalog_in(folder: Path) -> str | None:
    return next((str(folder / name) for name in _CATALOG if (folder / name).is_file()), None)


def _listed(file: Path, kube: KubeContext) -> Iterator[Member]:
    """The clusters of a list: a path on each line, beside the list, or `context NAME`."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError.at(str(file), _NO_LIST) from None
    if lines and lines[0].lstrip().startswith(("{", "[")):
        raise InputError.at(str(file), f"{_NO_LIST}; a snapshot has a name that ends in {' or '.join(_ENDINGS[:2])}")
    for line in (text.strip() for text in lines):
        if not line or line.startswith("#"):
            continue
        path = file.parent / line
        if line.startswith(_CONTEXT):
            name = line.removeprefix(_CONTEXT).strip()
            yield Member(name, kube=KubeContext(name, kube.kubeconfig))
        elif path.is_dir():
            yield _in_folder(path, line)
        else:
            yield Member(line, (str(path),), _catalog_in(path.parent))


def _bare(name: str) -> str:
    ending = next(ending for ending in sorted(_ENDINGS, key=len, reverse=True) if name.endswith(ending))
    return name.removesuffix(ending)


def _carried(member: Member) -> Member:
    """A cluster with its files, which another machine does not have."""
    paths = [Path(name) for name in (*member.files, *filter(None, [member.catalog]))]
    try:
        return member._replace(carried=tuple((path.name, path.read_bytes()) for path in paths))
    except OSError as error:
        return member._replace(wrong=error.strerror or str(error))


def _unpacked(member: Member, folder: Path) -> Member:
    for name, content in member.carried:
        (folder / name).write_bytes(content)
    files = tuple(str(folder / Path(name).name) for name in member.files)
    catalog = None if member.catalog is None else str(folder / Path(member.catalog).name)
    return member._replace(files=files, catalog=catalog)
