"""The program that runs scripts on probes: a line of JSON in, a line of JSON out.

It imports scripts as files, puts probes in the place of their ``Network`` and
``create_dataset``, calls ``main`` and looks at what comes of it. What it cannot see
from outside it sees through MindSpore: the optimizer and the loss scaler that are
built, the AMP level, and the weights at the moment when a window is recorded.

:mod:`generator.verify.process` starts it, as ``python -m generator.verify.driver``.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from generator.verify.case import Case

# Set before MindSpore is imported, as every script does.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")


class Spy:
    """Sees what a script builds, and hands it what a case asks for instead."""

    def __init__(self) -> None:
        self.case = Case()
        self.reset(self.case)

    def reset(self, case: Case) -> None:
        self.case = case
        self.active = False
        self.doomed = False
        self.network: Any = None
        self.converted: Any = None
        self.optimizer: Any = None
        self.scaler: Any = None
        self.scaler_arguments: dict[str, Any] | None = None
        self.amp: list[tuple[str, str]] = []
        self.mode: str | None = None
        self.start: dict[str, Any] = {}
        self.snapshots: dict[str, list[dict[str, Any]]] = {"window": [], "eval": []}
        self.training: dict[str, list[bool]] = {"window": [], "eval": []}
        self.known: set[int] = set()
        self.census: dict[str, str] = {}

    # ---- what MindSpore and the script call

    def install(self) -> None:
        """Wrap what is to be seen; once, before any script is imported."""
        import mindspore as ms
        from mindspore import amp, nn
        from mindspore.train import amp as train_amp

        dumps, set_context, jit = json.dumps, ms.set_context, ms.jit
        convert = amp.auto_mixed_precision

        def seen_dumps(record: Any, *args: Any, **keywords: Any) -> str:
            if self.active and isinstance(record, dict):
                if self.doomed:  # the window is recorded, and the next thing is not
                    os.kill(os.getpid(), signal.SIGKILL)
                self.see_record(record)
            return dumps(record, *args, **keywords)

        def seen_context(**keywords: Any) -> None:
            if "mode" in keywords:
                graph = keywords["mode"] == ms.GRAPH_MODE
                self.mode = "graph" if graph else "pynative"
                if self.case.mode:
                    other = {"graph": ms.GRAPH_MODE, "pynative": ms.PYNATIVE_MODE}
                    keywords["mode"] = other[self.case.mode]
            set_context(**keywords)

        def seen_jit(*args: Any, **keywords: Any) -> Any:
            if self.case.mode != "pynative":
                return jit(*args, **keywords)
            if args and callable(args[0]):
                return args[0]
            return lambda function: function

        def seen_convert(
            network: Any, level: str = "O0", dtype: Any = ms.float16
        ) -> Any:
            self.amp.append((level, str(dtype)))
            level = "O0" if self.case.full_precision else level
            self.converted = convert(network, level, dtype)
            return self.converted

        json.dumps = seen_dumps  # type: ignore[assignment]
        ms.set_context, ms.jit = seen_context, seen_jit
        amp.auto_mixed_precision = train_amp.auto_mixed_precision = seen_convert
        self._see_init(nn.Optimizer, self.see_optimizer)
        for scaler in (amp.StaticLossScaler, amp.DynamicLossScaler):
            self._see_scaler(scaler)

    def _see_init(self, cls: Any, see: Callable[[Any], None]) -> None:
        init = cls.__init__

        def seen_init(this: Any, *args: Any, **keywords: Any) -> None:
            init(this, *args, **keywords)
            see(this)

        cls.__init__ = seen_init

    def see_optimizer(self, optimizer: Any) -> None:
        self.optimizer = optimizer

    def _see_scaler(self, cls: Any) -> None:
        init = cls.__init__

        def seen_init(
            this: Any,
            scale_value: float,
            scale_factor: int = 2,
            scale_window: int = 0,
        ) -> None:
            self.scaler = this
            self.scaler_arguments = {
                "kind": "dynamic" if scale_window else "fixed",
                "value": float(scale_value),
                "factor": scale_factor,
                "window": scale_window or None,
            }
            case = self.case
            if not scale_window:
                init(this, case.fixed_scale or scale_value)
                return
            value = case.scale or scale_value
            init(this, value, scale_factor, case.scale_window or scale_window)

        cls.__init__ = seen_init

    def see_record(self, record: dict[str, Any]) -> None:
        """A line of metrics.jsonl is about to be written."""
        kind = "eval" if "eval_loss" in record else "window"
        if kind == "window" and not {"window", "loss"} <= record.keys():
            return
        self.snapshots[kind].append(self.snapshot())
        self.training[kind].append(bool((self.converted or self.network).training))
        if kind == "window" and self.case.census and not self.census:
            self.census = self.take_census()
        if kind == "window" and self.case.signals:
            window, number = self.case.signals
            if record["window"] == window and number == signal.SIGKILL:
                self.doomed = True
            elif record["window"] == window:
                os.kill(os.getpid(), number)

    # ---- what is noted

    def snapshot(self) -> dict[str, Any]:
        """Copies of the weights, the optimizer's state and the loss scaler's."""
        arrays = _arrays("net", self.network.get_parameters())
        if self.optimizer is not None:
            mine = {id(p) for p in self.network.get_parameters()}
            state = [p for p in self.optimizer.get_parameters() if id(p) not in mine]
            arrays |= _arrays("opt", state)
        if self.scaler is not None:
            arrays |= _arrays("scaler", [self.scaler.scale_value])
            if hasattr(self.scaler, "counter"):
                arrays |= _arrays("scaler", [self.scaler.counter])
        return arrays

    def parameters_alive(self) -> list[Any]:
        from mindspore import Parameter

        # By type(), since isinstance() would ask weak references for what is gone.
        return [one for one in gc.get_objects() if issubclass(type(one), Parameter)]

    def take_census(self) -> dict[str, str]:
        """The type of every Parameter made since the run began, by name."""
        alive = self.parameters_alive()
        return {p.name: str(p.dtype) for p in alive if id(p) not in self.known}


def _arrays(kind: str, parameters: Any) -> dict[str, Any]:
    return {f"{kind}.{p.name}": p.asnumpy().copy() for p in parameters}


def describe_optimizer(optimizer: Any, updates: int) -> dict[str, Any] | None:
    """What the optimizer does, in plain values.

    Its schedule, if it has one, is asked for the rates of so many updates.
    """
    if optimizer is None:
        return None
    import mindspore as ms

    cls = type(optimizer)
    about: dict[str, Any] = {
        "class": cls.__name__,
        "own": not cls.__module__.startswith("mindspore"),
        "bases": [base.__name__ for base in cls.__mro__[1:]],
        "order": [p.name for p in optimizer.parameters],
        "grouped_rates": bool(optimizer.is_group_lr),
        "loss_scale": float(optimizer.loss_scale),
    }
    if optimizer.is_group_lr:
        return about
    rate = optimizer.learning_rate
    if optimizer.dynamic_lr:
        listed = getattr(rate, "learning_rate", None)
        if isinstance(listed, ms.Parameter) and listed.ndim == 1:
            about["rates"] = [float(value) for value in listed.asnumpy()]
            about["rates_end"] = True
        else:
            steps = [ms.Tensor([step], ms.int32) for step in range(updates)]
            about["rates"] = [float(rate(step).asnumpy().reshape(())) for step in steps]
            about["rates_end"] = False
    else:
        about["rate"] = float(rate.asnumpy())
    decays = optimizer.weight_decay
    if not isinstance(decays, tuple):
        decays = [decays] * len(about["order"])
    about["decay"] = [
        float(decay.asnumpy()) if flag and hasattr(decay, "asnumpy") else 0.0
        for decay, flag in zip(decays, optimizer.decay_flags, strict=True)
    ]
    for name in ("momentum", "beta1", "beta2", "eps"):
        value = getattr(optimizer, name, None)
        if value is not None:
            about[name] = float(value.asnumpy() if hasattr(value, "asnumpy") else value)
    about["decoupled"] = _number(getattr(optimizer, "decay", None))
    about["dampening"] = _number(getattr(optimizer, "dampening", None)) or 0.0
    nesterov = getattr(optimizer, "use_nesterov", getattr(optimizer, "nesterov", False))
    about["nesterov"] = bool(nesterov)
    about["amsgrad"] = bool(getattr(optimizer, "use_amsgrad", False))
    return about


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


# ---- scripts and runs


class Driver:
    """Scripts, by their path, and the runs made of them."""

    def __init__(self) -> None:
        self.scripts: dict[str, Any] = {}
        self.spy = Spy()
        self.spy.install()

    def load(self, path: str) -> Any:
        """Import a script from its file, as any other program would."""
        if path not in self.scripts:
            name = f"script{len(self.scripts)}"
            spec = importlib.util.spec_from_file_location(name, path)
            if spec is None or spec.loader is None:
                raise ImportError(f"{path} is no Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
            originals = (module.Network, module.create_dataset)
            self.scripts[path] = (module, originals, constants(module))
        return self.scripts[path]

    def facts(self, path: str) -> dict[str, Any]:
        """What the module says before anything is run."""
        module, _, numbers = self.load(path)
        flags = vars(module.parse_args([])) if hasattr(module, "parse_args") else {}
        return {
            "constants": numbers,
            "flags": {name: str(value) for name, value in flags.items()},
            "statistics": statistics(module),
        }

    def run(self, path: str, case: Case, output: Path, here: str) -> dict[str, Any]:
        """Call the script's main as the case says; what it left is in ``output``."""
        import mindspore as ms

        module, (network, create_dataset), numbers = self.load(path)
        for name, value in {**numbers, **dict(case.constants)}.items():
            setattr(module, name, value)
        spy = self.spy
        spy.reset(case)
        # What PyNative mode compiles of a Parameter, as loss_scaler.unscale(), is kept
        # by its address: without this, a later run may get an earlier run's scale.
        ms.ms_memory_recycle()
        restore = self.put_probes(module, case, network, create_dataset)
        if case.census:
            spy.known = {id(p) for p in spy.parameters_alive()}
        stir(case.stir)
        arguments = command_line(module, case, output, here)
        answer: dict[str, Any] = {"status": 0}
        spy.active = True
        try:
            module.main(arguments)
        except SystemExit as stop:
            answer |= exit_of(stop)
        except KeyboardInterrupt:
            answer |= {"status": 130, "message": "KeyboardInterrupt"}
        except BaseException as error:  # a script may fail in any way
            answer |= failure_of(error, path)
        finally:
            spy.active = False
            restore()
        self.keep(output)
        updates = 64
        return answer | {
            "optimizer": describe_optimizer(spy.optimizer, updates),
            "scaler": spy.scaler_arguments,
            "amp": spy.amp,
            "mode": spy.mode,
            "training": spy.training,
            "census": spy.census,
        }

    def put_probes(
        self, module: Any, case: Case, network: Any, create_dataset: Any
    ) -> Callable[[], None]:
        """Put the case's network and data in place; returns what takes them out."""
        from generator.verify import probes

        spy = self.spy
        own = case.network == "own"
        build = network if own else probes.NETWORKS[case.network]

        def seen_network(*args: Any, **keywords: Any) -> Any:
            spy.network = build(*args, **keywords)
            spy.start = _arrays("net", spy.network.get_parameters())
            return spy.network

        def seen_dataset(args: Any, train: bool = True) -> Any:
            if not own:
                return probes.dataset(case, train)
            data = create_dataset(args, train=train)
            return data if train else data.take(1)  # its evaluation is not looked at

        step = getattr(module, "make_train_step", None)
        module.Network, module.create_dataset = seen_network, seen_dataset
        if case.mode == "graph" and step is not None:
            import mindspore as ms

            # In PyNative mode a functional script does not compile its step.
            module.make_train_step = lambda *args: ms.jit(step(*args))

        def restore() -> None:
            module.Network, module.create_dataset = network, create_dataset
            if step is not None:
                module.make_train_step = step

        return restore

    def keep(self, output: Path) -> None:
        """Write what was seen, one array per name with the windows along its front."""
        import numpy as np

        arrays = {f"start.{name}": value for name, value in self.spy.start.items()}
        for kind, snapshots in self.spy.snapshots.items():
            for name in snapshots[0] if snapshots else ():
                arrays[f"{kind}.{name}"] = np.stack([one[name] for one in snapshots])
        if self.spy.network is not None:
            arrays |= {f"end.{k}": v for k, v in self.spy.snapshot().items()}
        arrays |= {f"ckpt.{k}": v for k, v in checkpoint(output).items()}
        output.mkdir(parents=True, exist_ok=True)
        np.savez(output / "seen.npz", **arrays)


def constants(module: Any) -> dict[str, Any]:
    """The numbers that the module names in capitals."""
    return {
        name: value
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int | float)
    }


def statistics(module: Any) -> list[str]:
    """The parameters of the script's own network that no optimizer moves."""
    try:
        return [p.name for p in module.Network().untrainable_params()]
    except Exception:  # whatever is wrong with it shows when it is to train
        return []


def checkpoint(output: Path) -> dict[str, Any]:
    """What the run's last.ckpt holds; nothing if there is none that is whole."""
    import mindspore as ms

    path = output / "last.ckpt"
    if not path.is_file():
        return {}
    try:
        saved = ms.load_checkpoint(str(path))
    except ValueError:
        return {}
    return {n: p.asnumpy() for n, p in saved.items() if isinstance(p, ms.Parameter)}


def command_line(module: Any, case: Case, output: Path, here: str) -> list[str]:
    """The words with which main is called."""
    words = ["--output-dir", str(output), "--epochs", str(case.epochs)]
    if case.lr is not None:
        words += ["--lr", str(case.lr)]
    if case.max_updates is not None:
        words += ["--max-updates", str(case.max_updates)]
    if case.network == "own":
        # The script's data are where the user is, who did not start this process.
        flags = vars(module.parse_args([])) if hasattr(module, "parse_args") else {}
        if flags.get("data_dir") is not None:
            words += ["--data-dir", str(Path(here) / flags["data_dir"])]
    return [*words, *case.arguments]


def stir(draws: int) -> None:
    """Move the random state on, and away from where the last run left it."""
    if draws:
        import mindspore as ms
        import numpy as np

        ms.set_seed(1000 + draws)
        np.random.default_rng()
        np.random.rand(draws)


def exit_of(stop: SystemExit) -> dict[str, Any]:
    """The exit status as a shell would see it, and the message if it is one."""
    if stop.code is None or isinstance(stop.code, int):
        return {"status": stop.code or 0}
    return {"status": 1, "message": str(stop.code)}


def failure_of(error: BaseException, path: str) -> dict[str, Any]:
    """An exception in a line, with the last line of the script that it passed."""
    message = next(iter(str(error).strip().splitlines()), "")
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == path]
    where = f", line {lines[-1]}" if lines else ""
    kind = type(error).__name__
    return {"status": 1, "message": f"{kind}{where}: {message}", "exception": kind}


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    log = os.open("driver.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    driver: Driver | None = None
    for line in sys.stdin:
        request = json.loads(line)
        path = request["script"]
        folder = str(Path(path).parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)  # as for a script that is run
        os.ftruncate(log, 0)
        os.lseek(log, 0, os.SEEK_SET)
        try:
            driver = driver or Driver()
            if request["do"] == "load":
                answer = {"status": 0} | driver.facts(path)
            else:
                case = Case.read(request["case"])
                output = Path(request["output"])
                answer = driver.run(path, case, output, request["here"])
        except SystemExit as stop:
            answer = exit_of(stop)
            answer["status"] = answer["status"] or 1
        except BaseException as error:  # what is wrong with a script is its answer
            answer = failure_of(error, path)
        sys.stdout.flush()
        sys.stderr.flush()
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
