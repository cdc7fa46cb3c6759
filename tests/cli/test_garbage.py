import gc

from sapa.cli.garbage import collect_rarely


def test_garbage_is_collected_as_usual_afterwards() -> None:
    usual = gc.get_threshold()
    with collect_rarely():
        assert gc.get_threshold()[0] > usual[0]
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == usual
    assert gc.get_freeze_count() == 0
