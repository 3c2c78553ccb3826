"""`karpool snapshot`: a cluster in one small file, without secrets and needless detail."""

import sys
from pathlib import Path
from typing import Final

import click

from karpool.cli.completions import files
from karpool.cli.inputs.live_cluster import Purpose, read_live
from karpool.cli.options.brake_options import PAUSE_OPTION
from karpool.cli.options.input_options import READS_LIVE, ClusterInput, cluster_options
from karpool.cli.progress import progress
from karpool.model.reading.loading import load
from karpool.report.formatting import count

STDOUT: Final = "-"
EPILOG: Final = f"""{READS_LIVE}
\b
WHAT IS WRITTEN
  Pods, nodes, NodePools, NodeClaims, PodDisruptionBudgets, DaemonSets, StatefulSets,
  volumes and their claims and classes, namespaces, and where pods have claims on devices
  these, their slices and classes: of each, what decisions read.
  So names, labels, requests, limits, selectors, taints, affinities and conditions,
  and the annotations that mean something to Karpool. Never environments, arguments,
  commands, images, Secrets, ConfigMaps, addresses, managedFields or any other
  annotation; but of the ConfigMap karpool-pause, that it is there, and its reason.
  What is planned from the file is what would have been planned live.
\b
EXAMPLES
  karpool snapshot -o cluster.json.zst
  karpool plan -f cluster.json.zst --at 2026-11-15T22:00:00Z
  karpool snapshot -f everything.json -o small.json.gz
  karpool snapshot -o - | jq -r '.items[].kind' | sort | uniq -c
\b
EXIT STATUS
  0  written
  1  the cluster does not answer, or does not let its pods and nodes be listed
  2  bad input; one line on standard error
"""


@click.command(epilog=EPILOG)
@cluster_options
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    shell_complete=files,
    required=True,
    help="The file to write: packed if its name ends in .json.zst or .json.gz, plain if in .json; - for standard"
    " output, plain.",
)
@PAUSE_OPTION
def snapshot(source: ClusterInput, output: str, pause_namespace: str) -> None:
    """Write what plan, explain, compact and simulate need of a cluster to one file, which their -f reads.

    Secrets, environments, arguments and needless annotations are left out, so that the file can be handed on. The
    cluster is only read.
    """
    from karpool.live.snapshot_file import encode_snapshot
    from karpool.wire.output_files import check_writable, write_whole

    if output != STDOUT:
        check_writable(Path(output))
    with progress() as report:
        if source.files:
            loaded = load(source.files, stdin=sys.stdin.buffer, progress=report)
            objects, listed = loaded.objects, loaded.listed
        else:
            objects = read_live(source.kube, report, Purpose.KEEP, pause_namespace=pause_namespace, devices=True)
            listed = None
        report("Writing the snapshot", 0, None)
        written = encode_snapshot(objects, listed)
    if output == STDOUT:
        sys.stdout.buffer.write(written)
        return
    size = write_whole(Path(output), written)
    contents = f"{count(len(objects.nodes), 'node')} and {count(len(objects.pods), 'pod')}"
    click.echo(f"{output}: {contents}, {max(1, size // 1000):,} kB; karpool plan -f {output}")
