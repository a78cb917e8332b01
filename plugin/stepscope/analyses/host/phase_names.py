"""Phases of a step on the host, and the Python functions and labels that name one.

The profiler writes a Python function as `path(line): name`, a C function as `<built-in method recv
of _socket.socket object at 0x7f01>`.
"""

import re
from functools import lru_cache

from stepscope.analyses.host.library_detection import GARBAGE, is_user_label, library_of

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
LOADING, FORWARD_ONLY, CHECKPOINT = "loading", "forward_only", "checkpoint"
COLLECTIVES, COMPILING, LOGGING, NOT_MODEL = "collectives", "compiling", "logging", "not_model"
RUNTIME, HOST_CODE = "runtime", "host_code"
PHASES: dict[str, str] = {
    FORWARD: "forward",
    BACKWARD: "backward",
    OPTIMIZER: "optimizer",
    LOADING: "data loading",
    FORWARD_ONLY: "forward without backward",
    CHECKPOINT: "checkpoint",
    COLLECTIVES: "collectives",
    COMPILING: "compiling",
    LOGGING: "logging",
    NOT_MODEL: "operators outside the model",
    RUNTIME: "runtime calls",
    "tokenizing": "tokenizing",
    "images": "image processing",
    "json": "JSON",
    "network": "network",
    "files": "file access",
    "sleep": "sleep",
    "locks": "waiting for other threads or processes",
    "numpy": "NumPy",
    "pandas": "pandas",
    "garbage": "garbage collection",
    HOST_CODE: "host code outside operators",
}
"""Phase to its name in texts. Each nanosecond of a step is in one of them."""
PLURAL = (COLLECTIVES, NOT_MODEL, RUNTIME)
"""Phases whose names are plural."""
TRAINING = (FORWARD, BACKWARD, OPTIMIZER)
"""What every training step needs."""

_LOADS = r"(?:\w*load|find_class$|\w*restore|\w*deserialize)"
"""Functions of `torch/serialization.py` that read a file."""
_FUNCTIONS: dict[str, str] = {
    FORWARD_ONLY: r"^torch/nn/modules/module\.py\(\d+\): eval$",
    CHECKPOINT: rf"^torch/serialization\.py\(\d+\): (?!{_LOADS})|: state_dict$"
    r"|^torch/distributed/checkpoint/"
    r"|^copy\.py\(\d+\): _?deepcopy|^safetensors/|^pickle\.py\(\d+\): _?dump"
    r"|^<built-in (?:function|method) dumps?\b.*(?:[Pp]ickle|>$)",
    LOGGING: r"^(?:torch/utils/tensorboard|tensorboard|tensorboardX|wandb|mlflow|logging|tqdm"
    r"|matplotlib|torchmetrics|neptune|comet_ml|clearml|rich)/|^<built-in function print>",
    "tokenizing": r"^(?:tokenizers|sentencepiece|tiktoken)/|^transformers/tokenization_"
    r"|^<built-in method \w+ of (?:builtins\.)?(?:Tokenizer|CoreBPE)\b",
    "images": r"^(?:PIL|cv2|imageio|skimage|torchvision/(?:io|transforms))/"
    r"|\bImaging(?:Core|Decoder|Encoder)\b",
    "json": r"^(?:json|yaml)/",
    "network": r"^(?:socket|ssl)\.py\(|^(?:requests|urllib3?|http|aiohttp|botocore|s3fs)/"
    r"|^<built-in method \w+ of _(?:socket|ssl)\.",
    "files": rf"^torch/serialization\.py\(\d+\): {_LOADS}"
    r"|^<built-in function (?:open|fsync|replace|rename)>"
    r"|^<built-in method (?:read\w*|write\w*|flush|close) of _io\.",
    "sleep": r"^<built-in function sleep>",
    "locks": r"^threading\.py\(\d+\): (?:wait|acquire|join|_wait_for_tstate_lock)$"
    r"|^queue\.py\(\d+\): (?:get|put)$|^<built-in method acquire of _thread\."
    r"|^multiprocessing/(?:connection|queues|pool)\.py\(|^subprocess\.py\("
    r"|^concurrent/futures/_base\.py\(\d+\): result$",
}
_PATTERNS = {phase: re.compile(pattern) for phase, pattern in _FUNCTIONS.items()}
_LIBRARIES = {"numpy": "numpy", "pandas": "pandas", "PIL": "images", GARBAGE: "garbage"}
_PACKAGES = re.compile(r"^.*(?:site-packages|dist-packages|/lib/python3\.\d+)[/\\]")


@lru_cache(maxsize=10_000)
def phase_of_function(frame: str) -> str | None:
    """Return the phase that a Python function names; None: that of its caller."""
    name = _PACKAGES.sub("", frame).replace("\\", "/")
    for phase, pattern in _PATTERNS.items():
        if pattern.search(name):
            return phase
    return _LIBRARIES.get(library_of(frame) or "")


_WORDS: dict[str, str] = {
    CHECKPOINT: r"checkpoint|\bckpt|\bsave",
    FORWARD_ONLY: r"\bval(?:id\w*)?\b|\beval\w*|evaluat|validat",
    LOGGING: r"^log$|logg(?:ing|er)|\bmetrics?\b|progress|tensorboard|wandb",
}
_LIGHTNING = "[pl][profile][Callback]"
_LABELS = {phase: re.compile(pattern, re.IGNORECASE) for phase, pattern in _WORDS.items()}


OF_OPTIMIZER = re.compile(r"^Optimizer\.(?:step|zero_grad)#")
OF_FORWARD = re.compile(r"^(?:Distributed)?DataParallel\.forward$")


@lru_cache(maxsize=10_000)
def phase_of_label(label: str) -> str | None:
    """Return the phase that an annotation names: torch's, Lightning's callback or the user's."""
    if OF_OPTIMIZER.match(label):
        return OPTIMIZER
    if OF_FORWARD.match(label):
        return FORWARD
    if not is_user_label(label) and not label.startswith(_LIGHTNING):
        return None
    words = re.sub(r"[_\W]+", " ", label)
    return next((phase for phase, pattern in _LABELS.items() if pattern.search(words)), None)
