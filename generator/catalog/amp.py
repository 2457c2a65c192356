"""Mixed precision and loss scaling."""

from generator.catalog.entry import Entry, by_key

AMP_LEVELS = by_key(
    [
        Entry(key="O0", title="O0", summary="everything in float32"),
        Entry(
            key="O1",
            title="O1",
            summary="white list (matmul, convolution) in low precision, the rest fp32",
        ),
        Entry(
            key="O2",
            title="O2",
            summary="low precision but for the black list (normalization layers)",
        ),
        Entry(
            key="O3",
            title="O3",
            summary="the whole network in low precision, normalization too",
        ),
        Entry(
            key="auto",
            title="auto",
            summary="operator by operator: white, black and promote lists",
        ),
    ]
)

AMP_DTYPES = by_key(
    [
        Entry(
            key="float16",
            title="float16",
            summary="10 bits of mantissa, small range: needs loss scaling",
        ),
        Entry(
            key="bfloat16",
            title="bfloat16",
            summary="range of float32, 7 bits of mantissa; Ascend only",
        ),
    ]
)

LOSS_SCALES = by_key(
    [
        Entry(key="none", title="none", summary="no scaling, no overflow test"),
        Entry(
            key="fixed",
            title="fixed",
            summary="one scale for the run; overflowing windows are dropped",
        ),
        Entry(
            key="dynamic",
            title="dynamic",
            summary="shrinks at an overflow, grows after a run of good windows",
        ),
    ]
)

# The scale S at the start. 2**24, MindSpore's own default for O2, drops a handful
# of windows before a short run makes its first update.
DYNAMIC_SCALE_VALUE = 2.0**14
DYNAMIC_SCALE_FACTOR = 2
DYNAMIC_SCALE_WINDOW = 1000
FIXED_SCALE_VALUE = 2.0**10
