"""The C API of libhgemm as hgemm.h declares it: every function, struct and constant, by ctypes.

Functions have the header's names and take its arguments. Pointers may be addresses (int), None, or what ctypes has
for them, such as ``byref(args)``. Where C returns a status, failure raises :class:`Error`. Numbers that C's type cannot
hold are refused, and not wrapped: ValueError where they are assigned to members of structs, ctypes.ArgumentError where
they are arguments of functions.
"""

from __future__ import annotations

import ctypes
import math
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double, c_float, c_int, c_int64, c_size_t,
                    c_uint32, c_void_p, sizeof)
from functools import lru_cache
from importlib.util import find_spec
from operator import index
from pathlib import Path
from typing import Any

from ._constants import (Activation as Activation, Bias as Bias, Grouping as Grouping, Layout as Layout,
                         LogLevel as LogLevel, Mode as Mode, Op as Op, Status as Status, Type as Type, Uplo as Uplo)


def _package() -> Path:
    """The folder that holds lib and include. An editable install has them elsewhere than the Python files."""
    found = find_spec(f"{__package__}.lib")
    folders = found.submodule_search_locations if found is not None else None
    return Path(next(iter(folders))).resolve().parent if folders else Path(__file__).resolve().parent


PACKAGE = _package()

DEVICE_HOST = -1
DEVICE_CURRENT = -2

hgemm_handle_t = c_void_p
hgemm_stream_t = c_void_p
hgemm_logger_t = CFUNCTYPE(None, c_void_p, c_char_p)


_INTEGERS = {c_int: (-2**31, 2**31 - 1), c_int64: (-2**63, 2**63 - 1), c_uint32: (0, 2**32 - 1),
             c_size_t: (0, 2**64 - 1), c_void_p: (0, 2**64 - 1)}
_LARGEST_FLOAT = 2.0**128 - 2.0**104
_REALS = (c_float, c_double)


def integer(name: str, value: Any, kind: Any) -> int:
    """Of C's type ``kind``. TypeError or ValueError names the argument: ctypes would take the low bits of any."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{name}: {value!r}, must be an integer") from None
    least, most = _INTEGERS[kind]
    if not least <= number <= most:
        raise ValueError(f"{name}: {number}, must be from {least} to {most}")
    return number


def real(name: str, value: Any, kind: Any = c_float) -> float:
    """Of C's type ``kind``. TypeError or ValueError names the argument, also if a finite value becomes infinite."""
    if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        raise TypeError(f"{name}: {value!r}, must be a number")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:  # arrays of several elements, integers beyond any float
        raise type(error)(f"{name}: {error}") from error
    if math.isinf(kind(number).value) and not math.isinf(number):
        raise ValueError(f"{name}: {number}, which is infinite in float32")
    return number


def _checked(name: str, value: Any, kind: Any) -> Any:
    """``value``, if a parameter or member of C's type ``kind`` can hold it."""
    if isinstance(value, kind):
        return value
    if kind in _REALS:
        return real(name, value, kind)
    if kind is c_void_p and not hasattr(value, "__index__"):  # None, arrays, byref() and what else ctypes takes
        return value
    return integer(name, value, kind) if kind in _INTEGERS else value


class _Struct(Structure):
    """Its members are checked when they are assigned."""
    _limits: dict[str, tuple[Any, Any, Any, Any]]

    def __init_subclass__(cls) -> None:
        kinds = {field[0]: field[1] for field in cls._fields_}
        cls._limits = {name: (kind, *_INTEGERS.get(kind, (-_LARGEST_FLOAT, _LARGEST_FLOAT)),
                              int if kind in _INTEGERS else float) for name, kind in kinds.items()}

    def __setattr__(self, name: str, value: Any) -> None:
        known = self._limits.get(name)
        if known is None:
            raise AttributeError(f"{type(self).__name__} has no member {name}")
        kind, least, most, number = known
        if not isinstance(value, number) or not least <= value <= most:  # else it is right: products need that fast
            value = _checked(name, value, kind)
        _assign(self, name, value)


_assign = Structure.__setattr__


class Gate(_Struct):
    """hgemm_gate_t, a member of :class:`Args` and :class:`GroupedArgs`."""
    _fields_ = [("block", c_int64), ("limit", c_float), ("slope", c_float), ("offset", c_float), ("unused", c_uint32)]


class Args(_Struct):
    """hgemm_args_t; ``Args()`` has the defaults of hgemm_args_init()."""
    _fields_ = [("size", c_size_t), ("layout", c_int), ("transa", c_int), ("transb", c_int), ("type_ab", c_int),
                ("type_c", c_int), ("type_d", c_int), ("m", c_int64), ("n", c_int64), ("k", c_int64),
                ("alpha", c_float), ("beta", c_float), ("alpha_device", c_void_p), ("beta_device", c_void_p),
                ("a", c_void_p), ("lda", c_int64), ("b", c_void_p), ("ldb", c_int64), ("c", c_void_p),
                ("ldc", c_int64), ("d", c_void_p), ("ldd", c_int64), ("batch_count", c_int64),
                ("stride_a", c_int64), ("stride_b", c_int64), ("stride_c", c_int64), ("stride_d", c_int64),
                ("a_array", c_void_p), ("b_array", c_void_p), ("c_array", c_void_p), ("d_array", c_void_p),
                ("bias_mode", c_int), ("bias_type", c_int), ("bias", c_void_p), ("stride_bias", c_int64),
                ("activation", c_int), ("aux", c_void_p), ("ldaux", c_int64), ("stride_aux", c_int64),
                ("flags", c_uint32), ("unused", c_uint32), ("uplo", c_int), ("unused_too", c_uint32), ("gate", Gate)]

    def __init__(self) -> None:
        super().__init__()
        hgemm_args_init(byref(self), sizeof(self))


class GroupedArgs(_Struct):
    """hgemm_grouped_args_t; ``GroupedArgs()`` has the defaults of hgemm_grouped_args_init()."""
    _fields_ = [("size", c_size_t), ("grouping", c_int), ("transb", c_int), ("type_ab", c_int), ("type_d", c_int),
                ("group_count", c_int64), ("m", c_int64), ("n", c_int64), ("k", c_int64), ("alpha", c_float),
                ("beta", c_float), ("a", c_void_p), ("lda", c_int64), ("stride_a", c_int64), ("b", c_void_p),
                ("ldb", c_int64), ("stride_b", c_int64), ("d", c_void_p), ("ldd", c_int64), ("stride_d", c_int64),
                ("offsets", c_void_p), ("counts", c_void_p), ("problems", POINTER(Args)),
                ("ends", c_void_p), ("ends_i32", c_void_p), ("offsets_i32", c_void_p), ("counts_i32", c_void_p),
                ("transa", c_int), ("flags", c_uint32), ("activation", c_int), ("unused", c_uint32), ("gate", Gate),
                ("bias", c_void_p), ("stride_bias", c_int64), ("bias_type", c_int), ("unused_too", c_uint32),
                ("aux", c_void_p), ("ldaux", c_int64), ("stride_aux", c_int64)]

    def __init__(self) -> None:
        super().__init__()
        hgemm_grouped_args_init(byref(self), sizeof(self))


class GateGradientArgs(_Struct):
    """hgemm_gate_gradient_args_t; ``GateGradientArgs()`` has the defaults of hgemm_gate_gradient_args_init()."""
    _fields_ = [("size", c_size_t), ("rows", c_int64), ("columns", c_int64), ("product", c_void_p),
                ("ld_product", c_int64), ("of_d", c_void_p), ("ld_of_d", c_int64), ("of_product", c_void_p),
                ("ld_of_product", c_int64), ("type_product", c_int), ("type_of_d", c_int), ("type_of_product", c_int),
                ("activation", c_int), ("gate", Gate)]

    def __init__(self) -> None:
        super().__init__()
        hgemm_gate_gradient_args_init(byref(self), sizeof(self))


class RouteArgs(_Struct):
    """hgemm_route_args_t; ``RouteArgs()`` has the defaults of hgemm_route_args_init()."""
    _fields_ = [("size", c_size_t), ("tokens", c_int64), ("choices", c_int64), ("experts", c_int64),
                ("chosen", c_void_p), ("chosen_i32", c_void_p), ("ld", c_int64), ("ends", c_void_p),
                ("row_of_choice", c_void_p), ("choice_of_row", c_void_p)]

    def __init__(self) -> None:
        super().__init__()
        hgemm_route_args_init(byref(self), sizeof(self))


class RowsArgs(_Struct):
    """hgemm_rows_args_t; ``RowsArgs()`` has the defaults of hgemm_rows_args_init()."""
    _fields_ = [("size", c_size_t), ("tokens", c_int64), ("choices", c_int64), ("columns", c_int64),
                ("row_of_choice", c_void_p), ("weights", c_void_p), ("ldw", c_int64), ("a", c_void_p),
                ("lda", c_int64), ("d", c_void_p), ("ldd", c_int64), ("type_a", c_int), ("type_d", c_int),
                ("type_weights", c_int), ("unused", c_uint32), ("b", c_void_p), ("ldb", c_int64), ("type_b", c_int),
                ("unused_too", c_uint32)]

    def __init__(self) -> None:
        super().__init__()
        hgemm_rows_args_init(byref(self), sizeof(self))


class Flag(_Struct):
    """hgemm_flag_t, which must lie at a multiple of 16 bytes."""
    _fields_ = [("raised", c_uint32), ("taken", c_uint32), ("internal", c_uint32 * 2)]


class ExchangeArgs(_Struct):
    """hgemm_exchange_args_t; ``ExchangeArgs()`` has the defaults of hgemm_exchange_args_init().

    ``raise_`` is C's ``raise``, a word of Python's own.
    """
    _fields_ = [("size", c_size_t), ("raise_", c_void_p), ("raise_count", c_int64), ("wait", c_void_p),
                ("wait_count", c_int64), ("limit_us", c_int64), ("error", c_void_p), ("rows", c_int64),
                ("columns", c_int64), ("parts", c_void_p), ("part_count", c_int64), ("ld_part", c_int64),
                ("d", c_void_p), ("d_count", c_int64), ("ldd", c_int64), ("type_part", c_int), ("type_d", c_int),
                ("bias", c_void_p), ("bias_type", c_int), ("unused", c_uint32), ("raise_after", c_void_p),
                ("raise_after_count", c_int64)]

    def __init__(self) -> None:
        super().__init__()
        hgemm_exchange_args_init(byref(self), sizeof(self))


class Blocks(_Struct):
    """hgemm_blocks_t; ``Blocks()`` has the defaults of hgemm_blocks_init(). ``raise_`` is C's ``raise``."""
    _fields_ = [("size", c_size_t), ("rows", c_int64), ("first", c_int64), ("wait", c_void_p), ("raise_", c_void_p),
                ("d", c_void_p), ("limit_us", c_int64), ("error", c_void_p)]

    def __init__(self) -> None:
        super().__init__()
        hgemm_blocks_init(byref(self), sizeof(self))


class TuneOptions(_Struct):
    """hgemm_tune_options_t; ``TuneOptions()`` has the defaults of hgemm_tune_options_init()."""
    _fields_ = [("size", c_size_t), ("max_candidates", c_int), ("max_rounds", c_int), ("max_seconds", c_double),
                ("write", c_int), ("path", c_char_p)]

    def __init__(self) -> None:
        super().__init__()
        hgemm_tune_options_init(byref(self), sizeof(self))


class TuneReport(_Struct):
    """hgemm_tune_report_t; ``TuneReport()`` is as hgemm_tune_report_init() makes it."""
    _fields_ = [("size", c_size_t), ("candidates", c_int), ("wrong", c_int), ("failed", c_int), ("rounds", c_int),
                ("complete", c_int), ("built_in_us", c_double), ("before_us", c_double), ("now_us", c_double),
                ("gain", c_double), ("spread", c_double), ("built_in", c_char_p), ("before", c_char_p),
                ("now", c_char_p), ("wrong_kernels", c_char_p), ("path", c_char_p)]

    def __init__(self) -> None:
        super().__init__()
        hgemm_tune_report_init(byref(self), sizeof(self))


class Error(RuntimeError):
    """A call failed. The text is that of hgemm_last_error().

    ``status``: which :class:`Status`. ``argument``: 1-based position of the wrong argument of the C function; 0 if it
    was no argument.
    """

    def __init__(self, status: Status, text: str, argument: int = 0) -> None:
        super().__init__(text)
        self.status = status
        self.argument = argument

    def __reduce__(self) -> tuple[Any, ...]:
        return Error, (self.status, str(self), self.argument)


class _DlInfo(Structure):
    """Dl_info of dlfcn.h."""
    _fields_ = [("path", c_char_p), ("base", c_void_p), ("symbol", c_char_p), ("address", c_void_p)]


def _path_of(library: ctypes.CDLL) -> str:
    """Where the loader found it, wherever the process goes later."""
    found = _DlInfo()
    ctypes.CDLL(None).dladdr(ctypes.cast(library.hgemm_version, c_void_p), byref(found))
    return os.path.abspath(os.fsdecode(found.path))


def _load() -> tuple[ctypes.CDLL, str]:
    """The library that HGEMM_PYTHON_LIBRARY names, else the package's own, else the loader's."""
    own = PACKAGE / "lib" / "libhgemm.so.1"
    path = os.environ.get("HGEMM_PYTHON_LIBRARY") or (str(own) if own.exists() else "libhgemm.so.1")
    try:
        library = ctypes.CDLL(path)
        return library, _path_of(library)
    except OSError as error:
        raise ImportError(f"libhgemm cannot be loaded: {error}. The package has no lib/libhgemm.so.1 of its own, or "
                          "it does not fit this system; HGEMM_PYTHON_LIBRARY=<path> names another") from error


_library, library_path = _load()


@lru_cache(maxsize=None)
def _parameter(kind: Any) -> Any:
    """The type of a parameter that refuses what C's type cannot hold."""
    if kind not in _REALS and kind not in _INTEGERS:
        return kind

    class Checked(kind):  # type: ignore[misc]
        @classmethod
        def from_param(cls, value: Any) -> Any:
            return kind.from_param(_checked(kind.__name__, value, kind))
    return Checked


def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = _library[name]  # the library's own object; attributes of CDLL are shared
    function.restype, function.argtypes = result, [_parameter(kind) for kind in arguments]
    return function


def _raise_failure(status: int, function: Any, arguments: Any) -> Status:
    if status:
        raise Error(Status(status), hgemm_last_error().decode(errors="replace"), hgemm_last_error_argument())
    return Status.SUCCESS


def _call(name: str, *arguments: Any) -> Any:
    function = _function(name, c_int, *arguments)
    function.errcheck = _raise_failure
    return function


_sizes = (c_int64, c_int64, c_int64)
_matrix, _array = (c_void_p, c_int64), (c_void_p, c_int64, c_int64)  # with ld; with ld and stride
_handle = hgemm_handle_t
_short = (_handle, *_sizes, c_float, *_matrix, *_matrix, c_float, *_matrix)
_cblas = (_handle, c_int, c_int, c_int, *_sizes, c_float, *_matrix, *_matrix, c_float, *_matrix)
_strided = (_handle, c_int, c_int, c_int, *_sizes, c_float, *_array, *_array, c_float, *_array, c_int64)
_pointers = (*_cblas, c_int64)
_symmetric = (_handle, c_int, c_int, c_int, c_int64, c_int64, c_float)  # to alpha
_vector = (_handle, c_int64, c_int64, c_float, *_matrix, *_matrix, c_float, *_matrix)

# Errors and version
hgemm_status_string = _function("hgemm_status_string", c_char_p, c_int)
hgemm_last_error = _function("hgemm_last_error", c_char_p)
hgemm_last_error_argument = _function("hgemm_last_error_argument", c_int)
hgemm_version = _function("hgemm_version", c_int)
hgemm_build_info = _function("hgemm_build_info", c_char_p)

# Handle
hgemm_create = _call("hgemm_create", POINTER(_handle))
hgemm_create_on = _call("hgemm_create_on", POINTER(_handle), c_int)
hgemm_create_sized = _call("hgemm_create_sized", POINTER(_handle), c_int, c_size_t)
hgemm_destroy = _call("hgemm_destroy", _handle)
hgemm_set_stream = _call("hgemm_set_stream", _handle, hgemm_stream_t)
hgemm_get_stream = _call("hgemm_get_stream", _handle, POINTER(hgemm_stream_t))
hgemm_set_workspace = _call("hgemm_set_workspace", _handle, c_void_p, c_size_t)
hgemm_get_workspace = _call("hgemm_get_workspace", _handle, POINTER(c_void_p), POINTER(c_size_t))
hgemm_set_workspace_per_stream = _call("hgemm_set_workspace_per_stream", _handle, c_size_t)
hgemm_get_workspace_per_stream = _call("hgemm_get_workspace_per_stream", _handle, POINTER(c_size_t))
hgemm_set_mode = _call("hgemm_set_mode", _handle, c_int)
hgemm_get_mode = _call("hgemm_get_mode", _handle, POINTER(c_int))
hgemm_set_sm_count = _call("hgemm_set_sm_count", _handle, c_int)
hgemm_get_sm_count = _call("hgemm_get_sm_count", _handle, POINTER(c_int))
hgemm_get_device = _call("hgemm_get_device", _handle, POINTER(c_int))
hgemm_backend = _function("hgemm_backend", c_char_p, _handle)
hgemm_set_logger = _call("hgemm_set_logger", c_int, hgemm_logger_t, c_void_p)

# Level 3, column-major short forms
hgemm_nn = _call("hgemm_nn", *_short)
hgemm_nt = _call("hgemm_nt", *_short)
hgemm_tn = _call("hgemm_tn", *_short)
hgemm_tt = _call("hgemm_tt", *_short)
bgemm_nn = _call("bgemm_nn", *_short)
bgemm_nt = _call("bgemm_nt", *_short)
bgemm_tn = _call("bgemm_tn", *_short)
bgemm_tt = _call("bgemm_tt", *_short)

# Level 3, CBLAS form
hgemm = _call("hgemm", *_cblas)
bgemm = _call("bgemm", *_cblas)
hgemm_strided_batched = _call("hgemm_strided_batched", *_strided)
bgemm_strided_batched = _call("bgemm_strided_batched", *_strided)
hgemm_batched = _call("hgemm_batched", *_pointers)
bgemm_batched = _call("bgemm_batched", *_pointers)

# Level 3, symmetric results
hsyrk = _call("hsyrk", *_symmetric, *_matrix, c_float, *_matrix)
bsyrk = _call("bsyrk", *_symmetric, *_matrix, c_float, *_matrix)
hsyrkx = _call("hsyrkx", *_symmetric, *_matrix, *_matrix, c_float, *_matrix)
bsyrkx = _call("bsyrkx", *_symmetric, *_matrix, *_matrix, c_float, *_matrix)
hsyrk_strided_batched = _call("hsyrk_strided_batched", *_symmetric, *_array, c_float, *_array, c_int64)
bsyrk_strided_batched = _call("bsyrk_strided_batched", *_symmetric, *_array, c_float, *_array, c_int64)

# Level 3, general form
hgemm_args_init = _function("hgemm_args_init", None, POINTER(Args), c_size_t)
hgemm_gemm_ex = _call("hgemm_gemm_ex", _handle, POINTER(Args))
hgemm_workspace_size = _call("hgemm_workspace_size", _handle, POINTER(Args), POINTER(c_size_t))
hgemm_explain = _call("hgemm_explain", _handle, POINTER(Args), c_char_p, c_size_t)

# Grouped products
hgemm_grouped_args_init = _function("hgemm_grouped_args_init", None, POINTER(GroupedArgs), c_size_t)
hgemm_grouped_ex = _call("hgemm_grouped_ex", _handle, POINTER(GroupedArgs))

# Gradients of gated results
hgemm_gate_gradient_args_init = _function("hgemm_gate_gradient_args_init", None, POINTER(GateGradientArgs), c_size_t)
hgemm_gate_gradient = _call("hgemm_gate_gradient", _handle, POINTER(GateGradientArgs))

# Mixtures of experts
hgemm_route_args_init = _function("hgemm_route_args_init", None, POINTER(RouteArgs), c_size_t)
hgemm_route = _call("hgemm_route", _handle, POINTER(RouteArgs))
hgemm_rows_args_init = _function("hgemm_rows_args_init", None, POINTER(RowsArgs), c_size_t)
hgemm_gather_rows = _call("hgemm_gather_rows", _handle, POINTER(RowsArgs))
hgemm_combine_rows = _call("hgemm_combine_rows", _handle, POINTER(RowsArgs))
hgemm_dot_rows = _call("hgemm_dot_rows", _handle, POINTER(RowsArgs))
hgemm_clear_rows = _call("hgemm_clear_rows", _handle, POINTER(GroupedArgs))

# Several streams and GPUs
hgemm_exchange_args_init = _function("hgemm_exchange_args_init", None, POINTER(ExchangeArgs), c_size_t)
hgemm_exchange = _call("hgemm_exchange", _handle, POINTER(ExchangeArgs))
hgemm_blocks_init = _function("hgemm_blocks_init", None, POINTER(Blocks), c_size_t)
hgemm_gemm_blocks = _call("hgemm_gemm_blocks", _handle, POINTER(Args), POINTER(Blocks))
hgemm_read_error = _call("hgemm_read_error", _handle, c_void_p)

# Tuning
hgemm_tune_options_init = _function("hgemm_tune_options_init", None, POINTER(TuneOptions), c_size_t)
hgemm_tune_report_init = _function("hgemm_tune_report_init", None, POINTER(TuneReport), c_size_t)
hgemm_tune = _call("hgemm_tune", _handle, POINTER(Args), POINTER(TuneOptions), POINTER(TuneReport))
hgemm_tune_grouped = _call("hgemm_tune_grouped", _handle, POINTER(GroupedArgs), POINTER(TuneOptions),
                           POINTER(TuneReport))

# Level 2
hgemv_n = _call("hgemv_n", *_vector)
hgemv_t = _call("hgemv_t", *_vector)
bgemv_n = _call("bgemv_n", *_vector)
bgemv_t = _call("bgemv_t", *_vector)
