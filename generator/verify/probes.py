"""Networks and data whose right answers are known, in place of a script's own.

They stand in a file of their own because MindSpore compiles networks from their source.
"""

# mypy: disable-error-code="misc, no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

from mindspore import Tensor, nn
from mindspore import dataset as ds

from generator.verify import reference
from generator.verify.case import Case


class Plain(nn.Cell):
    """The network of reference.loss_and_gradient."""

    def __init__(self):
        super().__init__()
        start = {name: Tensor(value) for name, value in reference.weights().items()}
        self.hidden = nn.Dense(
            reference.FEATURES,
            reference.HIDDEN,
            weight_init=start["hidden.weight"],
            bias_init=start["hidden.bias"],
        )
        self.head = nn.Dense(
            reference.HIDDEN,
            reference.CLASSES,
            weight_init=start["head.weight"],
            bias_init=start["head.bias"],
        )
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.head(self.relu(self.hidden(x)))


class Norm(Plain):
    """The same behind BatchNorm, whose statistics tell in which mode it ran."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(reference.FEATURES)

    def construct(self, x):
        return self.head(self.relu(self.hidden(self.norm(x))))


class Linear(nn.Cell):
    """One layer without bias.

    Its gradient grows with the data, and the AMP level ``auto`` leaves its logits in
    low precision.
    """

    def __init__(self):
        super().__init__()
        start = Tensor(reference.linear_weights()["head.weight"])
        self.head = nn.Dense(
            reference.FEATURES, reference.CLASSES, weight_init=start, has_bias=False
        )

    def construct(self, x):
        return self.head(x)


class Random(nn.Cell):
    """Drawn weights: two runs are alike only by their seed.

    No dropout: on a CPU under load, MindSpore 2.10 draws other masks from a seed.
    """

    def __init__(self):
        super().__init__()
        self.hidden = nn.Dense(reference.FEATURES, reference.HIDDEN)
        self.head = nn.Dense(reference.HIDDEN, reference.CLASSES)
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.head(self.relu(self.hidden(x)))


NETWORKS = {"plain": Plain, "norm": Norm, "linear": Linear, "random": Random}


class Rows:
    """Micro-batches in a fixed order; some of the run's are made to overflow."""

    def __init__(self, case: Case, train: bool):
        self.batches = reference.micro_batches(case.sizes, case.data_seed, case.gain)
        self.plants = dict(case.plants) if train else {}
        self.read = 0

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Any:
        data, label = self.batches[index]
        value = self.plants.get(self.read)
        self.read += 1
        if value is not None:
            data = data.copy()
            data[0, 0] = value
        return data, label


def dataset(case: Case, train: bool) -> Any:
    """The micro-batches of a case; the same unspoilt ones for evaluation."""
    shuffle = case.shuffle and train
    return ds.GeneratorDataset(Rows(case, train), ["data", "label"], shuffle=shuffle)
