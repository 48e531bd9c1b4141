"""The paper's circuit in libspn-keras 0.6.0, as in its DGC-SPN example.

Its final product pads at the start, so its cell ``i`` is cell ``i - pad`` (modulo 8) of one that
pads at the end; otherwise cells, channels and the flattened root are in the order of `Parameters`.
"""

from __future__ import annotations

from importlib.metadata import version

import libspn_keras as spnk
import numpy as np
import tensorflow as tf
from parameters import CLASSES, DILATED_SUMS, FINAL_DILATION, LEAVES, STRIDED_SUMS, Parameters

VERSIONS = {name: version(name) for name in ("libspn-keras", "tensorflow-cpu", "keras")}
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)


class Contender:
    """A circuit with the given parameters, and Adam; training step and forward are compiled."""

    def __init__(self, grid: tuple[int, int], parameters: Parameters) -> None:
        self.grid = grid
        self.model = build(grid, parameters)
        self.loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.adam = tf.keras.optimizers.Adam(1e-3)
        self.step = tf.function(self._step)
        self.forward = tf.function(lambda z, y: self.model(z))

    def prepare(self, z: np.ndarray, y: np.ndarray) -> tuple[tf.Tensor, tf.Tensor]:
        """Points and labels in the library's own arrays."""
        return tf.constant(z.reshape(-1, *self.grid, 1)), tf.constant(y)

    def parity(self, z: tf.Tensor, y: tf.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """``log p(z, c)``, and the derivative of the loss by the locations ``[H W, K]``."""
        location = self.model.layers[0].loc
        with tf.GradientTape() as tape:
            log_joint = self.model(z)
            loss = self.loss(y, log_joint)
        gradient = tape.gradient(loss, location).numpy()
        return log_joint.numpy(), gradient.reshape(-1, LEAVES)

    def _step(self, z: tf.Tensor, y: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = self.loss(y, self.model(z, training=True))
        variables = self.model.trainable_variables
        # Also applies the library's constraint: the projection of the log-weights.
        self.adam.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


def build(
    grid: tuple[int, int], parameters: Parameters, dtype: str = "float32"
) -> spnk.models.SequentialSumProductNetwork:
    """The layers, with these parameters."""
    tf.keras.backend.set_floatx(dtype)

    def product(padding: str, stride: int, dilation: int) -> spnk.layers.Conv2DProduct:
        return spnk.layers.Conv2DProduct(
            depthwise=True, kernel_size=[2, 2], padding=padding, strides=[stride] * 2,
            dilations=[dilation] * 2,
        )  # fmt: skip

    layers = [
        spnk.layers.NormalLeaf(
            num_components=LEAVES, dtype=tf.as_dtype(dtype), input_shape=(*grid, 1)
        )
    ]
    for outputs in STRIDED_SUMS:
        layers += [product("valid", 2, 1), spnk.layers.Local2DSum(num_sums=outputs)]
    for i, outputs in enumerate(DILATED_SUMS):
        layers += [product("full", 1, 2**i), spnk.layers.Local2DSum(num_sums=outputs)]
    layers += [
        product("final", 1, FINAL_DILATION),
        spnk.layers.SpatialToRegions(),
        spnk.layers.DenseSum(num_sums=CLASSES),
        spnk.layers.RootSum(return_weighted_child_logits=True),
    ]
    model = spnk.models.SequentialSumProductNetwork(layers, unsupervised=False)
    model.build((None, *grid, 1))
    set_parameters(model, parameters)
    return model


def set_parameters(model: tf.keras.Model, parameters: Parameters) -> None:
    """Give a model these parameters."""
    model.layers[0].loc.assign(parameters.location[None, ..., None])
    *local, top = parameters.weights
    rows, columns = local[-1].shape[:2]
    shift = 2 * FINAL_DILATION - rows, 2 * FINAL_DILATION - columns
    top = np.roll(top, shift, axis=(0, 1)).reshape(1, 1, -1, CLASSES)
    prior = parameters.prior.reshape(1, 1, -1, 1)
    sums = [layer for layer in model.layers if isinstance(layer, spnk.layers.DenseSum)]
    for layer, weights in zip(sums, [*local, top, prior], strict=True):
        layer._accumulators.assign(np.log(weights))
