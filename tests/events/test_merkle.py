"""The Merkle tree of RFC 6962: known roots, and the recursive definition of the RFC."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cueline.events.merkle import AuditPath, Frontier, leaf_hash, node_hash, root_of_path

CONTENTS = [
    bytes.fromhex(each)
    for each in (
        *("", "00", "10", "2021", "3031", "40414243", "5051525354555657"),
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
"""The roots of the first contents, as the reference implementations of RFC 6962 have them."""
leaves = st.lists(st.binary(max_size=4).map(leaf_hash), min_size=1, max_size=40)


def tree(hashes):
    grown = Frontier()
    for each in hashes:
        grown.add(each)
    return grown


def root_by_definition(hashes):
    """Return the root as section 2.1 of RFC 6962 defines it."""
    if len(hashes) < 2:
        return hashes[0] if hashes else sha256().digest()
    middle = 1
    while 2 * middle < len(hashes):
        middle *= 2
    return node_hash(root_by_definition(hashes[:middle]), root_by_definition(hashes[middle:]))


def path_of(index, hashes):
    path = AuditPath(index, len(hashes))
    for each in enumerate(hashes):
        path.add(*each)
    return path.hashes()


@pytest.mark.parametrize("size", range(len(ROOTS)))
def test_the_roots_are_those_of_the_test_vectors(size):
    assert ROOTS[size] == tree(map(leaf_hash, CONTENTS[:size])).root().hex()


def test_the_path_is_that_of_the_test_vectors():
    path = path_of(5, [leaf_hash(each) for each in CONTENTS])

    assert [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ] == [each.hex() for each in path]


@given(leaves)
def test_a_root_is_that_of_the_definition(hashes):
    assert root_by_definition(hashes) == tree(hashes).root()


@given(leaves, leaves)
def test_a_tree_continues_from_its_frontier(first, rest):
    before = tree(first)

    after = Frontier(before.size, before.hashes)
    for each in rest:
        after.add(each)

    assert tree([*first, *rest]).root() == after.root()
    assert len(after.hashes) <= after.size.bit_length()


def test_a_frontier_of_another_size_is_refused():
    with pytest.raises(ValueError, match="2 hashes are no frontier of 4 leaves"):
        Frontier(4, [bytes(32), bytes(32)])


@given(leaves, st.data())
def test_a_path_leads_from_each_leaf_to_the_root(hashes, data):
    index = data.draw(st.integers(0, len(hashes) - 1))

    path = path_of(index, hashes)

    assert root_by_definition(hashes) == root_of_path(hashes[index], index, len(hashes), path)
    assert len(path) <= len(hashes).bit_length()


@given(leaves, st.data())
def test_a_changed_path_or_leaf_leads_elsewhere(hashes, data):
    index = data.draw(st.integers(0, len(hashes) - 1))
    parts = [hashes[index], *path_of(index, hashes)]
    changed = data.draw(st.integers(0, len(parts) - 1))
    parts[changed] = leaf_hash(parts[changed])

    assert tree(hashes).root() != root_of_path(parts[0], index, len(hashes), parts[1:])


@pytest.mark.parametrize(("index", "size", "length"), [(0, 1, 1), (3, 4, 1), (4, 4, 2), (-1, 4, 2)])
def test_a_path_of_another_length_or_place_has_no_root(index, size, length):
    assert root_of_path(bytes(32), index, size, [bytes(32)] * length) is None
