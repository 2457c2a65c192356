"""The three ways in which MindSpore code is written."""

from generator.catalog.entry import Entry, by_key

STYLES = by_key(
    [
        Entry(
            key="functional",
            title="functional style",
            summary="forward function, ms.value_and_grad, a train_step function",
        ),
        Entry(
            key="cell",
            title="Cell style",
            summary="a TrainStep cell with the whole step in its construct",
        ),
        Entry(
            key="model",
            title="Model style",
            summary="Model.train with a callback; the step is a cell where needed",
        ),
    ]
)
