r"""Train a multilayer perceptron on synthetic images.

Model style, compiled step. Mixed precision auto in float16, dynamic loss scaling.

    python model_mlp_auto_step.py

Written by msgen 0.1.0:

    msgen --style model --amp auto --lr-schedule step --warmup 5 --model mlp \
        -o model_mlp_auto_step.py
"""

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

# From MindSpore 2.9 on, the CPU back end takes a slow reference convolution where the
# CPU has AVX-512. This cap, set before the import, avoids it; Ascend does not see it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import amp, nn
from mindspore.train import Callback, Model

try:
    from tqdm import tqdm
except ImportError:  # progress is shown in plain lines then
    tqdm = None

WARMUP = 5  # updates over which the learning rate rises


def parse_args(argv=None):
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--epochs", type=int, default=10, help="default: 10")
    add("--batch-size", type=int, default=32, help="micro-batch; default: 32")
    add("--lr", type=float, default=0.002, help="learning rate; default: 0.002")
    add("--seed", type=int, default=1, help="default: 1")
    add("--device", choices=["auto", "CPU", "Ascend"], default="auto")
    add("--data-dir", type=Path, default="data", help="not used by this data")
    add("--output-dir", type=Path, default="output", help="default: output")
    add("--max-updates", type=int, help="stop after that many updates")
    add("--log-every", type=int, default=10, help="windows a line; default: 10")
    args = parser.parse_args(argv)
    for name in ("epochs", "batch_size", "lr", "max_updates", "log_every"):
        value = getattr(args, name)
        if value is not None and not 0 < value < math.inf:
            parser.error(f"{name} must be above 0, not {value}")
    if not 0 <= args.seed < 2**32:
        parser.error(f"seed must be from 0 to 2**32 - 1, not {args.seed}")
    return args


def select_device(name):
    """Run on the named device; "auto" is an NPU where there is one, else the CPU."""
    try:
        if name != "auto":
            ms.set_device(name)
    except (RuntimeError, ValueError):
        sys.exit(f"error: --device {name}: MindSpore finds no such device here")


def create_dataset(args, train):
    """Micro-batches of made-up images: ten coarse patterns, each under noise."""
    coarse = np.random.default_rng(0).normal(size=(10, 1, 2, 2))
    patterns = coarse.repeat(4, axis=2).repeat(4, axis=3)
    rng = np.random.default_rng(1 if train else 2)
    label = rng.integers(10, size=640 if train else 160).astype(np.int32)
    noise = rng.normal(scale=1.0, size=(len(label), *patterns.shape[1:]))
    data = (patterns[label] + noise).astype(np.float32)
    # One pair of arrays per item: a label that is a NumPy scalar is not taken.
    items = [(data[i], np.array(label[i])) for i in range(len(label))]
    dataset = ds.GeneratorDataset(items, ["data", "label"], shuffle=train)
    return dataset.batch(args.batch_size)


class Network(nn.Cell):
    """A multilayer perceptron: two hidden layers of 128 units."""

    def __init__(self, features=64, classes=10):
        super().__init__()
        self.flatten = nn.Flatten()
        self.hidden1 = nn.Dense(features, 128)
        self.hidden2 = nn.Dense(128, 128)
        self.head = nn.Dense(128, classes)
        self.relu = nn.ReLU()

    def construct(self, x):
        x = self.flatten(x)
        x = self.relu(self.hidden1(x))
        x = self.relu(self.hidden2(x))
        return self.head(x)


def learning_rate(lr, update, total):
    """The rate of an update, counted from 0: linear warm-up, then two steps down."""
    if update < WARMUP:
        return lr * (update + 1) / WARMUP
    if update < total / 2:
        return lr
    return lr / 10 if update < total * 3 / 4 else lr / 100


class TrainStep(nn.Cell):
    """One update from (data, label), returns loss, finite, scale."""

    def __init__(self, network, loss_fn, optimizer, loss_scaler):
        super().__init__(auto_prefix=False)  # the parameters keep their names
        self.network = network
        self.loss_fn = loss_fn
        self.optimizer = optimizer
        self.loss_scaler = loss_scaler
        self.one = ms.Tensor(1.0, ms.float32)
        # The order of optimizer.parameters is that in which it takes the gradients.
        self.grad_fn = ms.value_and_grad(
            self.forward, None, optimizer.parameters, has_aux=True
        )

    def forward(self, data, label):
        loss = self.loss_fn(self.network(data).astype(ms.float32), label)
        # The scaled loss is differentiated; the real one comes along to be shown.
        return self.loss_scaler.scale(loss), loss

    def construct(self, data, label):
        (_, loss), grads = self.grad_fn(data, label)
        grads = self.loss_scaler.unscale(grads)
        finite = amp.all_finite(grads)
        scale = self.loss_scaler.scale(self.one)  # of this window, before adjust()
        if finite:
            self.optimizer(grads)
        self.loss_scaler.adjust(finite)
        return loss, finite, scale


def evaluate(network, loss_fn, dataset):
    """Return the mean loss and the accuracy over the items of a data set."""
    network.set_train(False)
    loss_sum, correct, items = 0.0, 0, 0
    for data, label in dataset.create_tuple_iterator(num_epochs=1):
        logits = network(data).astype(ms.float32)
        # Weighted by items: in a mean over batches, a short last one counts too much.
        loss_sum += float(loss_fn(logits, label)) * data.shape[0]
        correct += int((logits.asnumpy().argmax(axis=1) == label.asnumpy()).sum())
        items += data.shape[0]
    network.set_train(True)
    return loss_sum / items, correct / items


class Recorder:
    """Writes metrics.jsonl, a line per window and per evaluation; shows progress."""

    def __init__(self, args, total_updates):
        args.output_dir.mkdir(parents=True, exist_ok=True)
        self.file = open(args.output_dir / "metrics.jsonl", "w", encoding="utf-8")
        self.log_every, self.windows, self.updates = args.log_every, 0, 0
        # With disable=None, tqdm shows its bar in a terminal only.
        self.bar = tqdm(total=total_updates, disable=None) if tqdm else None
        self.say = tqdm.write if tqdm else print
        self.started = time.perf_counter()

    def window(self, epoch, loss, lr, loss_scale=1.0, skipped=False, **counts):
        """Record a window; one that is skipped has made no update."""
        self.windows += 1
        self.updates += not skipped
        self.write(
            {"epoch": epoch, "window": self.windows, "updates": self.updates}
            | counts
            | {"loss": loss, "lr": lr, "loss_scale": loss_scale, "skipped": skipped}
            | {"seconds": time.perf_counter() - self.started}
        )
        if self.bar:
            self.bar.update(not skipped)
        if skipped:
            self.say(f"window {self.windows} skipped: overflow at scale {loss_scale:g}")
        elif self.windows % self.log_every == 0:
            self.say(f"epoch {epoch} window {self.windows} loss {loss:.4f} lr {lr:.4g}")

    def evaluation(self, epoch, loss, accuracy):
        """Record an evaluation."""
        self.write({"epoch": epoch, "eval_loss": loss, "accuracy": accuracy})
        self.reached = f"eval loss {loss:.4f} accuracy {accuracy:.4f}"
        self.say(f"epoch {epoch} {self.reached}")

    def finish(self):
        """Say what was reached."""
        skipped = self.windows - self.updates
        self.say(f"done: {self.updates} updates, {skipped} skipped, {self.reached}")

    def write(self, record):
        # JSON has no NaN and no infinity; null stands for both.
        record = {k: v if math.isfinite(v) else None for k, v in record.items()}
        print(json.dumps(record), file=self.file, flush=True)
        self.started = time.perf_counter()


class TrainingLog(Callback):
    """Records every window; after every epoch evaluates and saves the weights."""

    def __init__(self, args, network, loss_fn, eval_data, recorder, rates):
        super().__init__()
        self.args = args
        self.network = network
        self.loss_fn = loss_fn
        self.eval_data = eval_data
        self.recorder = recorder
        self.rates = rates

    def on_train_step_end(self, run_context):
        run = run_context.original_args()
        data = run.train_dataset_element[0]
        loss, finite, scale = run.net_outputs
        self.recorder.window(
            epoch=run.cur_epoch_num,
            micro_batches=1,
            items=data.shape[0],
            loss=float(loss),
            lr=self.rates[self.recorder.updates],
            loss_scale=float(scale),
            skipped=not bool(finite),
        )
        if self.recorder.updates == self.args.max_updates:
            run_context.request_stop()

    def on_train_epoch_end(self, run_context):
        epoch = run_context.original_args().cur_epoch_num
        loss, accuracy = evaluate(self.network, self.loss_fn, self.eval_data)
        self.recorder.evaluation(epoch, loss, accuracy)
        ms.save_checkpoint(self.network, str(self.args.output_dir / "last.ckpt"))


def main(argv=None):
    """Train, evaluate after every epoch, and say what was reached."""
    args = parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE)
    select_device(args.device)
    ms.set_seed(args.seed)  # before the network draws its first weights
    if ms.get_context("deterministic") != "ON":  # a process can set it only once
        ms.set_deterministic(True)  # same seed, same bits, at some cost on Ascend

    train_data = create_dataset(args, train=True)
    eval_data = create_dataset(args, train=False)
    total_updates = args.epochs * train_data.get_dataset_size()

    network = Network()
    loss_fn = nn.CrossEntropyLoss()
    rates = [learning_rate(args.lr, i, total_updates) for i in range(total_updates)]
    optimizer = nn.Adam(network.trainable_params(), rates)
    # Each operator runs in float16 or float32, by MindSpore's lists. Weights stay in
    # float32; the logits are cast to it for the loss.
    network = amp.auto_mixed_precision(network, "auto", ms.float16)
    loss_scaler = amp.DynamicLossScaler(16384, scale_factor=2, scale_window=1000)

    train_step = TrainStep(network, loss_fn, optimizer, loss_scaler)
    model = Model(train_step)
    recorder = Recorder(args, total_updates)
    log = TrainingLog(args, network, loss_fn, eval_data, recorder, rates)
    # Sink mode would hand over whole epochs and show none of their windows.
    model.train(args.epochs, train_data, callbacks=[log], dataset_sink_mode=False)
    recorder.finish()


if __name__ == "__main__":
    try:
        main()
    except OSError as error:  # missing data, a folder or disk that cannot be written
        sys.exit(f"error: {error}")
