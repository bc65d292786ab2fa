import numpy as np
import pytest

from ddclust.data.links import LinkError, Links, checked_links


def links(must=None, cannot=None, n_items=8, n_clusters=2, **options):
    return checked_links(must, cannot, n_items=n_items, n_clusters=n_clusters, **options)


def test_pairs_of_any_kind_are_arrays_of_positions():
    for pairs in ([[0, 1], [2, 3]], [(0, 1), (2, 3)], np.array([[0, 1], [2, 3]], dtype=np.uint8)):
        found = links(pairs, [[0, 2]])
        assert found.must.tolist() == [[0, 1], [2, 3]]
        assert found.cannot.tolist() == [[0, 2]]
        assert found.must.dtype == found.cannot.dtype == np.intp


@pytest.mark.parametrize("nothing", [None, [], np.empty((0, 2), dtype=int)])
def test_no_pairs(nothing):
    found = links(nothing, nothing)
    assert isinstance(found, Links)
    assert found.must.shape == found.cannot.shape == (0, 2)


def test_links_that_were_checked_are_not_checked_again():
    links = checked_links([[0, 1]], [[1, 2]], n_items=3, n_clusters=2)
    assert checked_links(links, None, n_items=3, n_clusters=2) is links


def test_an_item_shares_its_own_cluster():
    assert links([[3, 3], [0, 1]]).must.tolist() == [[0, 1]]


def test_the_chain_is_the_shortest_one():
    ring = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0]]
    with pytest.raises(
        LinkError, match="separates items 4 and 1, but must_link joins them: 4 - (5 - 0|3 - 2) - 1"
    ):
        links(ring, [[0, 6], [4, 1]])


def test_items_are_called_by_their_names():
    names = [f"{letter}.png" for letter in "abcdefgh"]
    with pytest.raises(LinkError, match="items 'c.png' and 'a.png'.*: 'c.png' - 'b.png' - 'a.png'"):
        links([[0, 1], [2, 1]], [[2, 0]], item_names=names)


def test_a_long_chain_is_cut():
    chain = np.stack([np.arange(99), np.arange(1, 100)], axis=1)
    with pytest.raises(LinkError) as caught:
        links(chain, [[0, 99]], n_items=105)
    assert "0 - 1 - 2 - 3 - 4 - 5 - (88 more) - 94 - 95" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"must": [0, 1]}, r"must_link .* shape \(m, 2\), got shape \(2,\)"),
        ({"must": [[0, 1, 2]]}, r"must_link .* got shape \(1, 3\)"),
        ({"must": [[0, 1], [2]]}, "must_link must hold pairs"),
        ({"cannot": [[0.0, 1.0]]}, "cannot_link .* whole numbers, got values of type float64"),
        ({"cannot": [["a", "b"]]}, "cannot_link .* whole numbers"),
        ({"cannot": [[True, False]]}, "cannot_link .* whole numbers, got values of type bool"),
        ({"must": [[0, 1], [2, 8]]}, "must_link names item 8 in row 1, but X has the items 0 to 7"),
        ({"cannot": [[-1, 1]]}, "cannot_link names item -1 in row 0"),
        ({"cannot": [[0, 1], [5, 5]]}, "cannot_link separates item 5 from itself"),
        ({"cannot": [[0, 1]], "n_clusters": 1}, "n_clusters=1 puts all"),
        ({"must": [[0, 1], [1, 2]], "n_items": 4, "n_clusters": 3}, "joins the 4 items to 2 groups"),
    ],
)
def test_wrong_pairs_are_named(options, message):
    with pytest.raises(LinkError, match=message):
        links(**options)


@pytest.mark.parametrize("seed", range(20))
def test_contradictions_are_those_of_a_naive_closure(seed):
    """Against the transitive closure by Floyd and Warshall."""
    rng = np.random.default_rng(seed)
    n = 12
    must, cannot = rng.integers(n, size=(7, 2)), rng.integers(n, size=(3, 2))
    cannot = cannot[cannot[:, 0] != cannot[:, 1]]
    joined = np.eye(n, dtype=bool)
    joined[must[:, 0], must[:, 1]] = joined[must[:, 1], must[:, 0]] = True
    for k in range(n):
        joined |= joined[:, [k]] & joined[[k], :]
    if joined[cannot[:, 0], cannot[:, 1]].any():
        with pytest.raises(LinkError, match="must_link joins them"):
            links(must, cannot, n_items=n)
    else:
        assert np.array_equal(links(must, cannot, n_items=n).cannot, cannot)
