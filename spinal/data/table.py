"""Published datasets by name. To add one, write a file that describes it, and add a line here."""

from __future__ import annotations

from spinal.data.cifar import CIFAR_10
from spinal.data.mnist import FASHION_MNIST, MNIST
from spinal.data.published import Published
from spinal.data.svhn import SVHN

PUBLISHED: dict[str, Published] = {
    "mnist": MNIST,
    "fashion-mnist": FASHION_MNIST,
    "cifar-10": CIFAR_10,
    "svhn": SVHN,
}
