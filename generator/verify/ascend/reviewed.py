"""Names of MindSpore whose documentation does not say where they run.

Each was looked at in MindSpore's source. A name stands for all that is in it.
"""

EVERYWHERE = {
    "mindspore.Parameter": "holds a value on any device",
    "mindspore.ParameterTuple": "holds parameters",
    "mindspore.Tensor": "holds a value on any device",
    "mindspore.common": "seeds, types, tensors and parameters, for any device",
    "mindspore.context": "settings; what a setting is for is another matter",
    "mindspore.dataset": "the data pipeline runs on the host",
    "mindspore.device_manager": "chooses the device",
    "mindspore.graph.api": "compiles for the device that is chosen",
    "mindspore.nn.cell": "the base class: what runs is what a cell calls",
    "mindspore.nn.layer.container": "holds cells",
    "mindspore.nn.optim.optimizer": "the base class: what runs is its subclass",
    "mindspore.runtime": "waits for the device that is chosen",
    "mindspore.train.amp": "puts casts into a network",
    "mindspore.train.callback": "runs on the host, between steps",
    "mindspore.train.metrics": "runs on the host, with NumPy",
    "mindspore.train.model": "a loop on the host; what runs is the network it is given",
    "mindspore.train.serialization": "reads and writes files on the host",
}


def runs_everywhere(name: str) -> bool:
    """Whether a name, or what it is in, was found to run on any device."""
    return any(f"{name}.".startswith(f"{known}.") for known in EVERYWHERE)


# What is gone, and what took its place.
SUCCESSORS = {
    "mindspore.amp.get_status": "amp.all_finite",
    "mindspore.amp.init_status": "amp.all_finite",
    "mindspore.common.set_seed": "mindspore.set_seed",
    "mindspore.dataset.transforms.c_transforms": "mindspore.dataset.transforms",
    "mindspore.dataset.transforms.py_transforms": "mindspore.dataset.transforms",
    "mindspore.dataset.vision.c_transforms": "mindspore.dataset.vision",
    "mindspore.dataset.vision.py_transforms": "mindspore.dataset.vision",
    "mindspore.ms_class": "mindspore.jit_class",
    "mindspore.ms_function": "mindspore.jit",
}
