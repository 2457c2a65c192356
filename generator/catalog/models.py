"""Networks: each entry has a template that defines ``Network``."""

from __future__ import annotations

from dataclasses import dataclass

from generator.catalog.datasets import ImageShape
from generator.catalog.entry import Entry, by_key


@dataclass(frozen=True, kw_only=True)
class Model(Entry):
    """A network for images.

    Attributes:
        synthetic_shape: the images that made-up data has for it.
        input_size: height and width it is built for; None takes any.
        batch_norm: it keeps running statistics, which see micro-batches.
    """

    synthetic_shape: ImageShape
    input_size: int | None = None
    batch_norm: bool = False


MODELS = by_key(
    [
        Model(
            key="mlp",
            title="a multilayer perceptron",
            summary="two hidden layers of 128; trains in seconds",
            synthetic_shape=ImageShape(1, 8),
        ),
        Model(
            key="lenet5",
            title="LeNet-5",
            summary="two convolutions, three dense layers, 32x32 images",
            synthetic_shape=ImageShape(1, 32),
            input_size=32,
        ),
        Model(
            key="resnet18",
            title="ResNet-18",
            summary="residual network with BatchNorm, stem for small images",
            synthetic_shape=ImageShape(3, 32),
            batch_norm=True,
        ),
    ]
)
