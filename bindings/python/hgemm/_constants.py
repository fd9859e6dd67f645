"""The enumerations of hgemm.h, without their prefixes."""

from enum import IntEnum


class Status(IntEnum):
    SUCCESS = 0
    NOT_INITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    ALLOC_FAILED = 4
    NO_DEVICE = 5
    DRIVER_ERROR = 6
    LAUNCH_FAILED = 7
    WORKSPACE_TOO_SMALL = 8
    INTERNAL = 9
    TIMED_OUT = 10


class Layout(IntEnum):
    ROW_MAJOR = 101
    COL_MAJOR = 102


class Op(IntEnum):
    NO_TRANS = 111
    TRANS = 112
    CONJ_TRANS = 113


class Type(IntEnum):
    F16 = 1
    BF16 = 2
    F32 = 3


class Mode(IntEnum):
    DEFAULT = 0
    BATCH_INVARIANT = 1
    TREE = 2


class Activation(IntEnum):
    NONE = 0
    RELU = 1
    GELU_TANH = 2
    GELU_ERF = 3
    SILU = 4


class Bias(IntEnum):
    NONE = 0
    M = 1
    N = 2


class Uplo(IntEnum):
    NONE = 0
    UPPER = 121
    LOWER = 122
    BOTH = 123


class LogLevel(IntEnum):
    OFF = 0
    ERROR = 1
    PLAN = 2
    TRACE = 3


class Grouping(IntEnum):
    CONTIGUOUS = 1
    MASKED = 2
    HOST = 3
    K = 4
