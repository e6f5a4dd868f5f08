"""Looks at the nodes of a Ray cluster."""


async def count_nodes(address: str) -> int:
    """Return how many nodes the cluster at *address* has, each with this version of cueline.

    Raises:
        ClusterError: it cannot be joined, or some have another version; the message says which.
    """
    from cueline.cluster.connection import connect_ray  # noqa: PLC0415 - see `placement.on_ray`

    with connect_ray(address, "cueline"):
        from cueline.cluster.node_check import check_nodes  # noqa: PLC0415 - it imports Ray

        return await check_nodes(address)
