"""What CSINodes say of nodes, and what that tells of new nodes of their types."""

from karpool.cluster.attach_limits import AttachLimits

TYPES = {"a1": "a", "a2": "a", "b1": "b"}


def type_of(node: str) -> str:
    return TYPES.get(node, "")


def test_the_node_of_a_type_that_attaches_least_speaks_for_it() -> None:
    limits = AttachLimits({"a1": {"ebs": 25}, "a2": {"ebs": 24, "efs": 9}, "b1": {"ebs": 127}, "unknown": {"ebs": 1}})
    assert limits.of_types(type_of) == {"a": {"ebs": 24, "efs": 9}, "b": {"ebs": 127}}


def test_a_driver_that_does_not_work_on_a_node_says_nothing_of_its_type() -> None:
    limits = AttachLimits({"a1": {"ebs": 0}, "a2": {"ebs": 25}})
    assert limits.of_types(type_of) == {"a": {"ebs": 25}}
    assert limits.of("a1") == {"ebs": 0}


def test_the_answer_is_the_same_object_until_it_is_another() -> None:
    limits = AttachLimits({"a1": {"ebs": 25}})
    first = limits.of_types(type_of)
    limits.put("a2", {"ebs": 25})
    assert limits.of_types(type_of) is first
    limits.put("a2", {"ebs": 20})
    assert limits.of_types(type_of) == {"a": {"ebs": 20}}
    limits.put("a2", {})
    assert limits.of_types(type_of) == first


def test_a_node_that_is_gone_says_nothing() -> None:
    here = dict(TYPES)
    limits = AttachLimits({"a1": {"ebs": 25}, "a2": {"ebs": 20}})
    assert limits.of_types(lambda node: here.get(node, "")) == {"a": {"ebs": 20}}
    del here["a2"]
    limits.forget_types("a2")
    assert limits.of_types(lambda node: here.get(node, "")) == {"a": {"ebs": 25}}
