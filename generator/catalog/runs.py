"""How and where a script runs."""

from generator.catalog.entry import Entry, by_key

MODES = by_key(
    [
        Entry(key="graph", title="graph mode", summary="the step is compiled"),
        Entry(
            key="pynative",
            title="PyNative mode",
            summary="eager: operator by operator, for debugging",
        ),
    ]
)

DEVICES = by_key(
    [
        Entry(
            key="auto",
            title="auto",
            summary="an NPU where there is one, else the CPU",
        ),
        Entry(key="CPU", title="CPU", summary="the CPU, also where there is an NPU"),
        Entry(key="Ascend", title="Ascend", summary="an Ascend NPU, or an error"),
    ]
)
