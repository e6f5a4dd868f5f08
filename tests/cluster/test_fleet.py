"""What a fleet does while Ray cannot be asked."""

from types import SimpleNamespace

from cueline.cluster.fleet import Fleet


async def test_a_lost_member_is_replaced_beside_the_log_while_ray_does_not_answer():
    # 000-068: there is no Ray here at all, and asking for its nodes fails.
    site = SimpleNamespace(node="here")
    fleet = Fleet(site, None, epoch=1, on_trouble=print, on_news=print)

    assert "here" == await fleet._settle("a node that is gone")
