"""Changes to rules that no trace can show: the file, the change in words, and why.

`mutants.py` leaves them out of its count, and fails if one of them is gone or is noticed.
"""

BOUND = "bounds the work on huge traces alone"
ALWAYS = "analyses always say so; the type checker does not know it"
TOLD = "who claims has rows to tell of"
NO_TIME = "without calls no time reaches the share from which it reports"
FIRST_OF_A_THREAD = "the first node of a thread has not run before"
DATA_SHEETS = "no data sheet that is known lies between"

EQUIVALENT: tuple[tuple[str, str, str], ...] = (
    (
        "repeated_backward",
        "_repeated: Eq turned in `thread[:-1] == thread[1:]`",
        FIRST_OF_A_THREAD,
    ),
    ("shared.kernel_time", "MOST_SOURCED = 6700", BOUND),
    ("shared.kernel_time", "MOST_SOURCED = 15000", BOUND),
    ("shared.kernel_time", "_longest: `len(duration_ns) > most` is always False", BOUND),
    ("shared.kernel_time", "Work.share: `self.whole_ns` is always True", TOLD),
    ("broadcast_product", "check: `not len(products.first)` is always False", NO_TIME),
    ("fp32_matmul_no_tf32", "LEAST_RATIO = 1.0050000000000001", DATA_SHEETS),
    ("fp8_candidate", "LEAST_RATIO = 1.0050000000000001", DATA_SHEETS),
    ("launch_blocking_mode", "_idle: `device is None` is always False", ALWAYS),
    ("python_loop_indexing", "_table: `spent[number]` is always True", TOLD),
)
