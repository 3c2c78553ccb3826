"""Labels of plots stay within their plot."""

from tests.tables import row, table

from karpool.report.plot_labels import anchor


@table(
    row(x=200.0, text="50,000", anchored="middle"),
    row(x=410.0, text="22:00", anchored="end"),
    row(x=0.0, text="18:00", anchored="start"),
)
def test_a_label_near_an_edge_ends_or_begins_there(x: float, text: str, anchored: str) -> None:
    assert anchor(x, text, 420) == anchored
