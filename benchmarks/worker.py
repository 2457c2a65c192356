"""A process that makes windows on request: ``python -m benchmarks.worker REQUEST``.

REQUEST is JSON: the network, the level, the micro-batch, the device and the folder of
the scripts. Each line that comes in, ``["variant", N, windows]``, is answered by one
with the seconds of every window; the first answer of a variant is its compilation. All
see the same batch, and read the loss once a window.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[[int], list[float]]
CLASSES = 10


def load(path: Path) -> Any:
    """A script as a module; MindSpore finds its source by the module's name."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def timed(window: Callable[[], Any]) -> Run:
    """Runs a window so many times; its loss is read, so that the work is done."""

    def run(windows: int) -> list[float]:
        seconds = []
        for _ in range(windows):
            start = time.perf_counter()
            float(window())
            seconds.append(time.perf_counter() - start)
        return seconds

    return run


class Variants:
    """What one process can run, built when it is first asked for."""

    def __init__(self, request: dict[str, Any]):
        self.request = request
        self.built: dict[tuple[str, int], Run] = {}

    def run(self, variant: str, length: int, windows: int) -> list[float]:
        """Seconds of each of ``windows`` windows of ``length`` micro-batches."""
        if variant == "peak memory":  # bytes, of the process until now
            return [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0]
        key = (variant, length)
        if key not in self.built:
            self.built[key] = self.build(variant, length)
        return self.built[key](windows)

    def build(self, variant: str, length: int) -> Run:
        raise NotImplementedError


class MindSporeVariants(Variants):
    """The steps of generated scripts, and the forms that they are compared with."""

    def __init__(self, request: dict[str, Any]):
        super().__init__(request)
        # The script sets what it wants of the environment, so it comes before all else.
        self.script("functional", 1)

    def script(self, style: str, length: int) -> Any:
        """The script of a style; every window longer than one is the same script."""
        import mindspore as ms

        kind = "single" if length == 1 else "window"
        name = f"{self.request['network']}_{self.request['amp']}_{style}_{kind}"
        if name not in sys.modules:
            module = load(Path(self.request["scripts"]) / f"{name}.py")
            ms.set_context(mode=ms.GRAPH_MODE)
            module.select_device(self.request["device"])
        return sys.modules[name]

    def parts(self, module: Any) -> tuple[Any, ...]:
        """A new network of the level, its loss, its optimizer and its loss scaler."""
        import mindspore as ms
        from mindspore import amp, nn

        from benchmarks import rivals

        ms.set_seed(1)
        network = module.Network()
        network.set_train(True)
        optimizer = rivals.momentum(network)
        scaler = None
        if self.request["amp"] != "O0":
            network = amp.auto_mixed_precision(network, self.request["amp"], ms.float16)
            network.set_train(True)
            scaler = amp.DynamicLossScaler(1024, scale_factor=2, scale_window=1000)
        return network, nn.CrossEntropyLoss(), optimizer, scaler

    def step_parts(self, module: Any, length: int) -> list[Any]:
        """What a script's step is made of, in its order."""
        parts = [part for part in self.parts(module) if part is not None]
        return parts + [self.request["batch"]] * (length > 1)

    def arrays(self, items: int) -> tuple[Any, Any]:
        import numpy as np

        rng = np.random.default_rng(1)
        shape = (items, *self.request["shape"])
        data = rng.normal(size=shape).astype(np.float32)
        return data, rng.integers(CLASSES, size=items).astype(np.int32)

    def batch(self, items: int) -> tuple[Any, Any]:
        import mindspore as ms

        data, label = self.arrays(items)
        return ms.Tensor(data), ms.Tensor(label)

    def build(self, variant: str, length: int) -> Run:
        from benchmarks import rivals

        size = self.request["batch"]
        if variant in ("functional", "cell"):
            return self.of_script(variant, length)
        if variant == "model":
            return self.of_model(length)
        module = self.script("functional", 1)
        network, loss_fn, optimizer, scaler = self.parts(module)
        if variant == "Model.train":
            model = rivals.model_train(network, loss_fn, optimizer)
            return self.trained(model, 1, marks=False)
        if variant == "one batch":
            window = rivals.plain(network, loss_fn, optimizer, scaler)
            batches = [self.batch(size * length)]
        elif variant == "lists":
            window = rivals.lists(network, loss_fn, optimizer, scaler)
            batches = [self.batch(size)] * length
        else:
            window = rivals.accumulator(network, loss_fn, optimizer, scaler, length)
            batches = [self.batch(size)] * length
        return timed(lambda: window(batches))

    def of_script(self, style: str, length: int) -> Run:
        import mindspore as ms

        module = self.script(style, length)
        make = module.make_train_step if style == "functional" else module.TrainStep
        step = make(*self.step_parts(module, length))
        data, label = self.batch(self.request["batch"])
        if length == 1:

            def window() -> Any:
                outputs = step(data, label)
                return outputs[0] if isinstance(outputs, tuple) else outputs

        else:
            flags = {False: ms.Tensor(False), True: ms.Tensor(True)}

            def window() -> Any:
                for index in range(1, length + 1):
                    outputs = step(data, label, flags[index == length])
                return outputs[0] if isinstance(outputs, tuple) else outputs

        return timed(window)

    def of_model(self, length: int) -> Run:
        module = self.script("model", length)
        parts = self.step_parts(module, length)
        if hasattr(module, "TrainStep"):
            model = module.Model(module.TrainStep(*parts))
        else:
            model = module.Model(*parts)
        return self.trained(model, length, marks=length > 1)

    def trained(self, model: Any, length: int, marks: bool) -> Run:
        """Windows of MindSpore's own loop; the first of each run starts the data."""
        import mindspore.dataset as ds
        import numpy as np
        from mindspore.train import Callback

        data, label = self.arrays(self.request["batch"])

        class Clock(Callback):
            def __init__(self) -> None:
                super().__init__()
                self.times: list[float] = []

            def on_train_step_end(self, run_context: Any) -> None:
                state = run_context.original_args()
                if state.cur_step_num % length == 0:
                    outputs = state.net_outputs
                    float(outputs[0] if isinstance(outputs, tuple) else outputs)
                    self.times.append(time.perf_counter())

        def run(windows: int) -> list[float]:
            count = (windows + 1) * length
            rows = [
                (data, label, *([np.array(i % length == 0)] if marks else []))
                for i in range(1, count + 1)
            ]
            names = ["data", "label", *(["window_end"] if marks else [])]
            rows_of_data = ds.GeneratorDataset(rows, names, shuffle=False)
            clock = Clock()
            model.train(1, rows_of_data, callbacks=[clock], dataset_sink_mode=False)
            return [b - a for a, b in itertools.pairwise(clock.times)]

        return run


class TorchVariants(Variants):
    """The same network in PyTorch with the accumulation loop that it documents."""

    def build(self, variant: str, length: int) -> Run:
        import torch

        from benchmarks.torch_networks import network

        torch.manual_seed(1)
        net = network(self.request["network"], self.request["shape"], CLASSES)
        optimizer = torch.optim.SGD(net.parameters(), 0.001, momentum=0.9)
        loss_fn = torch.nn.CrossEntropyLoss()
        size = self.request["batch"]
        data = torch.randn(size, *self.request["shape"])
        label = torch.randint(CLASSES, (size,))

        def window() -> torch.Tensor:
            for _ in range(length):
                loss = loss_fn(net(data), label)
                (loss / length).backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return timed(window)


def main() -> None:
    """Answer the lines that come in until there are no more."""
    request = json.loads(sys.argv[1])
    # What is printed by others must not come between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    torch = request.get("framework") == "torch"
    variants = TorchVariants(request) if torch else MindSporeVariants(request)
    for line in sys.stdin:
        try:
            answer: Any = variants.run(*json.loads(line))
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
