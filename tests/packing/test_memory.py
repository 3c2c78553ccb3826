"""Kernels do not look where an array ends, so nobody may hand them one that is too short."""

import numpy as np
import pytest

from karpool.catalog.instance_types import Catalog
from karpool.cluster.arrays import ColumnTable
from karpool.cluster.snapshot import Snapshot
from karpool.model.objects import Objects
from karpool.packing.engine import Engine
from karpool.packing.kernels.memory import COLUMNS, LayoutError, Memory
from karpool.packing.layout import cluster_columns


def test_an_array_of_another_type_or_shape_is_refused() -> None:
    memory = Memory()
    with pytest.raises(TypeError, match="free must be 2-dimensional int64, not 1-dimensional int64"):
        memory.put(free=np.zeros(3, dtype=np.int64))
    with pytest.raises(TypeError, match="free must be 2-dimensional int64, not 2-dimensional int32"):
        memory.put(free=np.zeros((3, 3), dtype=np.int32))


def test_an_array_that_is_a_view_with_gaps_is_refused() -> None:
    with pytest.raises(TypeError, match="free"):
        Memory().put(free=np.zeros((4, 4), dtype=np.int64)[:, ::2])


def test_an_array_that_is_too_short_is_named_with_what_is_missing() -> None:
    memory = Memory()
    memory.put(free=np.zeros((5, 4), dtype=np.int64))
    memory.check({"nodes": 5, "resources": 4})
    with pytest.raises(LayoutError, match="free has room for 4 resources, but there are 6"):
        memory.check({"nodes": 5, "resources": 6})


def test_a_shorter_array_is_noticed_also_after_a_check_that_passed() -> None:
    memory = Memory()
    memory.put(free=np.zeros((5, 4), dtype=np.int64))
    memory.check({"nodes": 5, "resources": 4})
    memory.put(free=np.zeros((4, 4), dtype=np.int64))
    with pytest.raises(LayoutError, match="free has room for 4 nodes, but there are 5"):
        memory.check({"nodes": 5, "resources": 4})


def test_kernels_and_the_tables_of_the_snapshot_agree_on_what_each_axis_counts() -> None:
    engine = Engine(Snapshot(Objects()), Catalog(()))
    snapshot = engine.snapshot
    tables: list[ColumnTable] = [snapshot.nodes, snapshot.pods, snapshot.classes, snapshot.topology, snapshot.shapes]
    given = {id(array): name for name, array in cluster_columns(snapshot, engine.tables.pools).items()}
    compared = 0
    for table in tables:
        for attribute, declared in table.declared_columns.items():
            name = given.get(id(getattr(table, attribute)))
            if name is not None:
                assert (COLUMNS[name].axes, COLUMNS[name].dtype) == (declared.axes, declared.dtype), name
                compared += 1
    assert compared > 20
