"""Runs a script's main() on data of ours; harness.drive starts it in a process."""

import importlib.util
import json
import sys
from pathlib import Path


def load(path):
    """Import a script from its file, as any other program would."""
    spec = importlib.util.spec_from_file_location("train", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["train"] = module
    spec.loader.exec_module(module)
    return module


def main():
    sys.path.insert(0, str(Path.cwd()))  # as for a script that is run
    script = load(sys.argv[1])
    import mindspore as ms
    import numpy as np
    import probes
    from mindspore import dataset as ds

    cases = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    for index, case in enumerate(cases):
        built = []

        def network(case=case, built=built):
            built.append(probes.NETWORKS[case.get("network", "plain")]())
            return built[-1]

        def create_dataset(args, train, case=case):
            rows = probes.rows(case, train)
            return ds.GeneratorDataset(rows, ["data", "label"], shuffle=False)

        script.Network = network
        script.create_dataset = create_dataset
        output = Path(f"case{index}")
        arguments = ["--output-dir", str(output), "--lr", str(case.get("lr", 0.1))]
        arguments += ["--epochs", str(case.get("epochs", 1))]
        if "max_updates" in case:
            arguments += ["--max-updates", str(case["max_updates"])]
        start = {p.name: p.asnumpy().copy() for p in network().get_parameters()}
        built.clear()
        script.main(arguments)
        checkpoint = ms.load_checkpoint(str(output / "last.ckpt"))
        state = {f"before.{name}": value for name, value in start.items()}
        state |= {f"after.{p.name}": p.asnumpy() for p in built[0].get_parameters()}
        state |= {f"ckpt.{name}": p.asnumpy() for name, p in checkpoint.items()}
        state |= {"training": np.array(built[0].training)}
        np.savez(output / "state.npz", **state)


if __name__ == "__main__":
    main()
