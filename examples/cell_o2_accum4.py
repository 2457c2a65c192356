"""Train LeNet-5 on hand-written digits.

Cell style, compiled step. Mixed precision O2 in float16, dynamic loss scaling. An
update for every window of 4 micro-batches, as if they were one batch.

    python cell_o2_accum4.py

Written by msgen 0.1.0, tested with MindSpore 2.7.2 to 2.10.0:

    msgen --style cell --amp O2 --accum 4 --dataset digits -o cell_o2_accum4.py
"""

import argparse
import json
import math
import os
import shlex
import shutil
import signal
import sys
import time
from pathlib import Path

# From MindSpore 2.9 on, the CPU back end takes a slow reference convolution where the
# CPU has AVX-512. This cap, set before the import, avoids it; Ascend does not see it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import amp, nn, ops

try:
    from tqdm import tqdm
except ImportError:  # progress is shown in plain lines then
    tqdm = None

CHECKPOINT_FORMAT = 1
MAX_SKIPPED = 50  # windows in a row that may overflow before the run is given up
REMEDY = "Try a smaller --lr, and look for NaN in the data."
ACCUM = 4  # micro-batches per update: one window


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
    add("--resume", nargs="?", const=True, type=Path, help="FILE; default: the last")
    add("--checkpoint-every", type=int, help="updates; default: an epoch's end only")
    add("--keep", type=int, default=0, help="older checkpoints to keep; default: 0")
    add("--max-updates", type=int, help="stop after that many updates")
    add("--log-every", type=int, default=10, help="windows a line; default: 10")
    args = parser.parse_args(argv)
    positive = "epochs batch_size lr checkpoint_every max_updates log_every"
    for name in positive.split():
        value = getattr(args, name)
        if value is not None and not 0 < value < math.inf:
            parser.error(f"{name} must be above 0, not {value}")
    if args.keep < 0:
        parser.error(f"keep must be 0 or more, not {args.keep}")
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


class Batches:
    """Micro-batches cut from arrays; the order depends on the seed of the data."""

    def __init__(self, data, label, size, shuffle):
        self.data, self.label, self.size, self.shuffle = data, label, size, shuffle

    def __len__(self):
        return math.ceil(len(self.label) / self.size)

    def __iter__(self):
        order = np.arange(len(self.label))
        if self.shuffle:
            np.random.default_rng(ds.config.get_seed()).shuffle(order)
        for items in np.split(order, range(self.size, len(order), self.size)):
            # Cut at once: put together item by item, they would hold up the step.
            yield self.data[items], self.label[items]


def create_dataset(args, train):
    """Micro-batches of scikit-learn's digits; every fifth image is for testing."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        sys.exit("error: the digits come with scikit-learn: pip install scikit-learn")
    digits = load_digits()
    data = digits.images[:, None].astype(np.float32) / 8 - 1  # 0..16 becomes -1..1
    # From 8x8 to 32x32 pixels, by repeating each one.
    data = data.repeat(4, axis=2).repeat(4, axis=3)
    chosen = (np.arange(len(data)) % 5 != 0) == train
    data, label = data[chosen], digits.target[chosen].astype(np.int32)
    batches = Batches(data, label, args.batch_size, shuffle=train)
    return ds.GeneratorDataset(batches, ["data", "label"])


class Network(nn.Cell):
    """LeNet-5 (LeCun et al., 1998) with ReLU, for images of 32x32 pixels."""

    def __init__(self, channels=1, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.dense1 = nn.Dense(16 * 5 * 5, 120)
        self.dense2 = nn.Dense(120, 84)
        self.head = nn.Dense(84, classes)

    def pool(self, x):
        # The mean of each 2x2 square. Ascend's pooling kernels take no bfloat16.
        n, c, h, w = x.shape
        return x.reshape(n, c, h // 2, 2, w // 2, 2).mean((3, 5))

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.flatten(x)
        x = self.relu(self.dense1(x))
        x = self.relu(self.dense2(x))
        return self.head(x)


class TrainStep(nn.Cell):
    """One micro-batch of a window, from (data, label, window_end).

    Returns loss, finite, scale. The micro-batch that ends the window makes
    the update and returns the mean loss of the window.
    """

    def __init__(self, network, loss_fn, optimizer, loss_scaler, batch_size):
        super().__init__(auto_prefix=False)  # the parameters keep their names
        self.network = network
        self.loss_fn = loss_fn
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.loss_scaler = loss_scaler
        self.true = ms.Tensor(True)
        self.one = ms.Tensor(1.0, ms.float32)
        # Sums over the window, in float32 and in the optimizer's order.
        self.grad_sum = optimizer.parameters.clone(prefix="grad_sum", init="zeros")
        self.loss_sum = ms.Parameter(ms.Tensor(0.0, ms.float32), name="loss_sum")
        self.weight_sum = ms.Parameter(ms.Tensor(0.0, ms.float32), name="weight_sum")
        # The order of optimizer.parameters is that in which it takes the gradients.
        self.grad_fn = ms.value_and_grad(
            self.forward, None, optimizer.parameters, has_aux=True
        )

    def weight(self, data):
        """1 for a full micro-batch; a short one counts for what it holds."""
        return data.shape[0] / self.batch_size

    def forward(self, data, label):
        loss = self.loss_fn(self.network(data), label)
        # So weighted, the window counts for exactly one large batch of all its items.
        loss = loss * self.weight(data)
        # The scaled loss is differentiated; the real one comes along to be shown.
        return self.loss_scaler.scale(loss), loss

    def construct(self, data, label, window_end):
        (_, loss), grads = self.grad_fn(data, label)
        for i, grad in enumerate(grads):
            ops.assign_add(self.grad_sum[i], grad)
        ops.assign_add(self.loss_sum, loss)
        ops.assign_add(self.weight_sum, self.one * self.weight(data))
        finite = self.true
        scale = self.loss_scaler.scale(self.one)

        if window_end:
            # Set in here, or MindSpore may drop an `if` whose work nobody reads later.
            loss = self.loss_sum / self.weight_sum
            # Once a window, in this order: unscale, test, clip, update. An inf or NaN
            # of any micro-batch is still there in the sum.
            grads = tuple([total / self.weight_sum for total in self.grad_sum])
            grads = self.loss_scaler.unscale(grads)
            finite = amp.all_finite(grads)
            if finite:
                self.optimizer(grads)
            self.loss_scaler.adjust(finite)
            for total in self.grad_sum:
                ops.assign(total, ops.zeros_like(total))
            ops.assign(self.loss_sum, ops.zeros_like(self.loss_sum))
            ops.assign(self.weight_sum, ops.zeros_like(self.weight_sum))
        return loss, finite, scale


def evaluate(network, loss_fn, dataset):
    """Return the mean loss and the accuracy over the items of a data set."""
    network.set_train(False)
    loss_sum, correct, items = 0.0, 0, 0
    for data, label in dataset.create_tuple_iterator(num_epochs=1):
        logits = network(data)
        # Weighted by items: in a mean over batches, a short last one counts too much.
        loss_sum += float(loss_fn(logits, label)) * data.shape[0]
        correct += int((logits.asnumpy().argmax(axis=1) == label.asnumpy()).sum())
        items += data.shape[0]
    network.set_train(True)
    return loss_sum / items, correct / items


class Recorder:
    """Writes metrics.jsonl, a line per window and per evaluation; shows progress."""

    def __init__(self, args, micro_batches, total_updates, place):
        self.args, self.micro_batches = args, micro_batches
        self.epoch, self.micro_batch, self.windows, self.updates = 1, 0, 0, 0
        self.skipped_in_row = 0
        self.metrics_size = 0  # bytes
        vars(self).update(place)  # a resumed run goes on from there
        path = args.output_dir / "metrics.jsonl"
        self.file = open(path, "a" if place else "w", encoding="utf-8")
        # What was recorded after the checkpoint will come again.
        self.file.truncate(min(self.metrics_size, self.file.tell()))
        # With disable=None, tqdm shows its bar in a terminal only.
        bar = {"total": total_updates, "initial": self.updates, "disable": None}
        self.bar = tqdm(**bar) if tqdm else None
        self.say = tqdm.write if tqdm else print
        self.reached = "nothing left to do"
        self.started = time.perf_counter()

    def place(self):
        """Where the run stands: what a checkpoint keeps of it."""
        names = "epoch micro_batch windows updates skipped_in_row metrics_size"
        return {name: getattr(self, name) for name in names.split()}

    def unfinished(self):
        """Whether there is more to train."""
        enough = self.updates >= (self.args.max_updates or math.inf)
        return self.epoch <= self.args.epochs and not enough

    def window(self, index, loss, lr, loss_scale, skipped, **counts):
        """Record a window, whose last micro-batch is the epoch's of that index."""
        self.micro_batch = index
        self.windows += 1
        self.updates += not skipped
        self.skipped_in_row = self.skipped_in_row + 1 if skipped else 0
        self.write(
            {"epoch": self.epoch, "window": self.windows, "updates": self.updates}
            | counts
            | {"loss": loss, "lr": lr, "loss_scale": loss_scale, "skipped": skipped}
            | {"seconds": time.perf_counter() - self.started}
        )
        if self.bar:
            self.bar.update(not skipped)
        where = f"epoch {self.epoch} window {self.windows}"
        if skipped:
            self.say(f"{where} skipped: overflow at scale {loss_scale:g}")
        elif self.windows % self.args.log_every == 0:
            self.say(f"{where} loss {loss:.4f} lr {lr:.4g}")
        # Training never goes on blind; what was saved is from before this window.
        where += f", loss scale {loss_scale:g}"
        if self.skipped_in_row > MAX_SKIPPED:
            overflows = f"{self.skipped_in_row} overflows in a row"
            sys.exit(f"error: {where}: {overflows}. {REMEDY}")
        if not skipped and not math.isfinite(loss):
            sys.exit(f"error: {where}: the loss is {loss}. {REMEDY}")

    def evaluation(self, loss, accuracy):
        """Record an evaluation; an epoch that has no more windows ends with it."""
        self.write({"epoch": self.epoch, "eval_loss": loss, "accuracy": accuracy})
        self.reached = f"eval loss {loss:.4f} accuracy {accuracy:.4f}"
        self.say(f"epoch {self.epoch} {self.reached}")
        if self.micro_batch == self.micro_batches:
            self.epoch, self.micro_batch = self.epoch + 1, 0

    def finish(self):
        """Say what was reached."""
        skipped = self.windows - self.updates
        self.say(f"done: {self.updates} updates, {skipped} skipped, {self.reached}")

    def write(self, record):
        # JSON has no NaN and no infinity; null stands for both.
        record = {k: v if math.isfinite(v) else None for k, v in record.items()}
        print(json.dumps(record), file=self.file, flush=True)
        self.metrics_size = self.file.tell()
        self.started = time.perf_counter()


class Checkpoints:
    """Saves all that a run needs to go on to the same bits, and takes it up again."""

    def __init__(self, args, settings, network, optimizer, loss_scaler):
        self.args, self.settings = args, settings
        self.last = args.output_dir / "last.ckpt"
        self.saved = self.signal = None  # saved: the update that last.ckpt is of
        # Weights have their own names, so the file also loads into a bare network.
        self.state = {p.name: p for p in network.get_parameters()}
        for p in optimizer.get_parameters():
            if p.name not in self.state:  # else it is one of the weights
                self.state[f"optimizer.{p.name}"] = p
        self.state["loss_scaler.scale_value"] = loss_scaler.scale_value
        self.state["loss_scaler.counter"] = loss_scaler.counter
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.interrupt)

    def interrupt(self, number, frame):
        """End the run when its window is done; a second signal ends it at once."""
        self.signal = number
        signal.signal(number, signal.SIG_DFL)

    def start(self):
        """Return where the run stands: {} at its beginning, else after loading."""
        path, place = self.args.resume, {}
        if path is True:
            path = self.last if self.last.exists() else None
            if not path:
                print(f"no {self.last} yet: starting from the beginning")
        if path:
            place = self.load(path)
            print(f"{path}: going on after update {place['updates']}")
        self.args.output_dir.mkdir(parents=True, exist_ok=True)
        if not path or path.resolve().parent != self.last.resolve().parent:
            place |= {"metrics_size": 0} if place else {}
            if self.last.exists():  # it is of another run
                os.replace(self.last, self.last.with_name("previous.ckpt"))
        return place

    def load(self, path):
        """Set the state to what a file holds; a file that does not fit sets nothing."""
        if not path.is_file():
            sys.exit(f"error: there is no checkpoint {path}")
        try:
            saved = ms.load_checkpoint(str(path), crc_check=True)
            about = json.loads(saved.pop("about").asnumpy().tobytes())
            random_state = saved.pop("random_state")
        except (ValueError, KeyError):
            sys.exit(f"error: {path} is damaged or not a checkpoint of this script")
        written, read = about.get("format"), CHECKPOINT_FORMAT
        if written != read:
            sys.exit(f"error: {path} has format {written}; this script reads {read}")
        for name, value in self.settings.items():
            if about["settings"].get(name) != value:
                was = about["settings"].get(name)
                sys.exit(f"error: {path} is of a run with {name} {was}, not {value}")
        wanted, found = (
            {(name, str(p.shape), str(p.dtype)) for name, p in values.items()}
            for values in (self.state, saved)
        )
        if wanted != found:
            name = min(wanted ^ found)[0]
            sys.exit(f"error: {path} is of another network or optimizer: see {name}")
        for name, parameter in self.state.items():
            parameter.set_data(saved[name])
        ms.set_rng_state(random_state)
        if path.resolve() == self.last.resolve():
            self.saved = about["place"]["updates"]
        return about["place"]

    def window_done(self, recorder):
        """Save if it is time to; end the run if a signal asked for it."""
        every = self.args.checkpoint_every
        due = every and recorder.updates % every == 0 and recorder.updates != self.saved
        epoch_done = recorder.micro_batch == recorder.micro_batches
        if due or epoch_done or self.signal or not recorder.unfinished():
            self.save(recorder)
        if self.signal:
            command = shlex.join([*sys.argv, "--resume"])
            recorder.say(f"stopped after update {recorder.updates}; to go on:")
            recorder.say(f"python {command}")
            sys.exit(128 + self.signal)  # as a shell reports a signal

    def save(self, recorder):
        """Write a checkpoint under another name, then put it in the place of the last.

        So whatever stops it, a kill or a full disk, the last one is whole.
        """
        for name, parameter in self.state.items():
            if not np.isfinite(parameter.asnumpy()).all():
                sys.exit(
                    f"error: {name} is not finite after update {recorder.updates}, "
                    f"so nothing is saved. {REMEDY}"
                )
        about = {"format": CHECKPOINT_FORMAT, "settings": self.settings}
        about = json.dumps(about | {"place": recorder.place()}).encode()
        values = self.state | {"random_state": ms.get_rng_state()}
        values["about"] = ms.Tensor(np.frombuffer(about, np.uint8))
        items = [{"name": name, "data": value} for name, value in values.items()]
        new = self.last.with_name("unfinished.ckpt")
        try:
            if self.args.keep and self.saved is not None:
                self.keep_last(new)
            ms.save_checkpoint(items, str(new), crc_check=True)
            with open(new, "rb") as file:
                os.fsync(file.fileno())  # a power cut could leave it empty otherwise
            os.replace(new, self.last)
        except OSError as error:
            sys.exit(f"error: {new}: {error.strerror}; {self.last} is as it was")
        finally:
            for rest in self.last.parent.glob("unfinished.*"):
                rest.unlink()
        self.saved = recorder.updates

    def keep_last(self, copy):
        """Keep the last checkpoint under its update's number, and --keep in all."""
        copy.unlink(missing_ok=True)
        shutil.copyfile(self.last, copy)
        os.replace(copy, self.last.with_name(f"update_{self.saved:08d}.ckpt"))
        for path in sorted(self.last.parent.glob("update_*.ckpt"))[: -self.args.keep]:
            path.unlink()


def main(argv=None):
    """Train, evaluate after every epoch, and say what was reached."""
    args = parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE)
    select_device(args.device)
    ms.set_seed(args.seed)  # before the network draws its first weights
    ms.manual_seed(args.seed)  # MindSpore 2.7 needs it said for its generator too
    if ms.get_context("deterministic") != "ON":  # a process can set it only once
        ms.set_deterministic(True)  # same seed, same bits, at some cost on Ascend

    train_data = create_dataset(args, train=True)
    eval_data = create_dataset(args, train=False)
    micro_batches = train_data.get_dataset_size()
    # What is left at the end of an epoch is a window too, if a short one.
    total_updates = args.epochs * math.ceil(micro_batches / ACCUM)

    network = Network()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.Adam(network.trainable_params(), args.lr)
    # All but normalization runs in float16. Weights, logits and loss stay in float32.
    network = amp.auto_mixed_precision(network, "O2", ms.float16)
    loss_scaler = amp.DynamicLossScaler(16384, scale_factor=2, scale_window=1000)

    # What a run must share with the one that it goes on with.
    settings = {"micro_batches": micro_batches, "accum": ACCUM}
    names = ("seed", "batch_size", "lr")
    settings |= {name: getattr(args, name) for name in names}
    checkpoints = Checkpoints(args, settings, network, optimizer, loss_scaler)
    place = checkpoints.start()

    train_step = TrainStep(network, loss_fn, optimizer, loss_scaler, args.batch_size)
    recorder = Recorder(args, micro_batches, total_updates, place)

    flags = {False: ms.Tensor(False), True: ms.Tensor(True)}
    while recorder.unfinished():
        network.set_train(True)
        # The order of an epoch depends on the seed and the epoch, not on those before.
        ds.config.set_seed((args.seed + recorder.epoch) % 2**32)
        batches = train_data.create_tuple_iterator(num_epochs=1)
        items = 0
        for index, (data, label) in enumerate(batches, start=1):
            if index <= recorder.micro_batch:
                continue  # the run was resumed within this epoch
            window_end = index % ACCUM == 0 or index == micro_batches
            loss, finite, scale = train_step(data, label, flags[window_end])
            items += data.shape[0]
            if not window_end:
                continue
            recorder.window(
                index,
                micro_batches=(index - 1) % ACCUM + 1,
                items=items,
                loss=float(loss),
                lr=args.lr,
                loss_scale=float(scale),
                skipped=not bool(finite),
            )
            checkpoints.window_done(recorder)
            items = 0
            if not recorder.unfinished():
                break
        recorder.evaluation(*evaluate(network, loss_fn, eval_data))
    recorder.finish()


if __name__ == "__main__":
    try:
        main()
    except OSError as error:  # missing data, a folder or disk that cannot be written
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:  # later ones end the run at a window's end
        sys.exit("stopped before the first window")
