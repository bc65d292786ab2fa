"""Named data sets: one file each, which declares its sets in ``SETS``."""

from ddclust.data.named import (
    agnews,
    cifar10,
    circles,
    digits,
    manuals,
    mnist,
    rcv1,
    reuters21578,
    seals,
    tiles,
    wine,
)
from ddclust.data.named.declaration import NamedSet

# In the order in which they are listed to users.
NAMED: dict[str, NamedSet] = {
    declared.name: declared
    for declared in (
        *circles.SETS,
        *digits.SETS,
        *tiles.SETS,
        *manuals.SETS,
        *wine.SETS,
        *mnist.SETS,
        *seals.SETS,
        *cifar10.SETS,
        *rcv1.SETS,
        *reuters21578.SETS,
        *agnews.SETS,
    )
}
