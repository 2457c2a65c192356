"""Networks and data for driven runs; they live in a file, as graph mode wants."""

import reference
from mindspore import Tensor, nn


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
        self.tanh = nn.Tanh()

    def construct(self, x):
        return self.head(self.tanh(self.hidden(x)))


class Norm(Plain):
    """The same behind BatchNorm, whose statistics tell in which mode it ran."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(reference.FEATURES)

    def construct(self, x):
        return self.head(self.tanh(self.hidden(self.norm(x))))


class NoBias(nn.Cell):
    """A last layer without bias, whose logits the level auto leaves in float16."""

    def __init__(self):
        super().__init__()
        self.head = nn.Dense(reference.FEATURES, reference.CLASSES, has_bias=False)

    def construct(self, x):
        return self.head(x)


NETWORKS = {"plain": Plain, "norm": Norm, "nobias": NoBias}


class Rows:
    """Micro-batches in a fixed order; some of the run's are made to overflow."""

    def __init__(self, case):
        self.batches = reference.micro_batches(case["sizes"])
        self.plant = {int(k): float(v) for k, v in case.get("plant", {}).items()}
        self.read = 0

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        data, label = self.batches[index]
        value = self.plant.get(self.read)
        self.read += 1
        if value is not None:
            data = data.copy()
            data[0, 0] = value
        return data, label


def rows(case, train):
    """The micro-batches of a case; the same unspoilt ones for evaluation."""
    return Rows(case if train else {"sizes": case["sizes"]})
