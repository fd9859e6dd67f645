"""hgemm.c against hgemm.h, and against the layout that tests/abi holds the header to."""

import ctypes
import os
import re
import unittest
from pathlib import Path

import hgemm
from hgemm import c

SOURCE = Path(os.environ.get("HGEMM_SOURCE", Path(__file__).parents[3]))
HEADER = SOURCE / "include/hgemm.h"
STRUCTS = {"hgemm_gate_t": c.Gate, "hgemm_args_t": c.Args, "hgemm_grouped_args_t": c.GroupedArgs,
           "hgemm_gate_gradient_args_t": c.GateGradientArgs, "hgemm_route_args_t": c.RouteArgs, "hgemm_rows_args_t": c.RowsArgs, "hgemm_flag_t": c.Flag,
           "hgemm_exchange_args_t": c.ExchangeArgs, "hgemm_blocks_t": c.Blocks,
           "hgemm_tune_options_t": c.TuneOptions, "hgemm_tune_report_t": c.TuneReport}
ENUMS = {"hgemm_status_t": c.Status, "hgemm_layout_t": c.Layout, "hgemm_op_t": c.Op, "hgemm_type_t": c.Type,
         "hgemm_mode_t": c.Mode, "hgemm_activation_t": c.Activation, "hgemm_bias_t": c.Bias,
         "hgemm_uplo_t": c.Uplo, "hgemm_log_level_t": c.LogLevel, "hgemm_grouping_t": c.Grouping}
PREFIXES = {c.Status: "STATUS_", c.Mode: "MODE_", c.Activation: "ACTIVATION_", c.Bias: "BIAS_", c.LogLevel: "LOG_",
            c.Grouping: "GROUPED_"}
SCALARS = {"int": ctypes.c_int, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t, "float": ctypes.c_float,
           "hgemm_handle_t": ctypes.c_void_p, "hgemm_stream_t": ctypes.c_void_p, "hgemm_logger_t": c.hgemm_logger_t}


def prototypes():
    """Triples of result, name and parameters, each parameter without its name."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    for result, name, parameters in re.findall(r"^HGEMM_API ([^;(]*?)(\w+)\(([^;]*)\);", text, re.M):
        parameters = [] if parameters.strip() == "void" else parameters.split(",")
        yield result.strip(), name, [re.sub(r"\w+$", "", p.strip()).strip() for p in parameters]


def as_ctypes(declared):
    if declared == "void":
        return None
    base, stars = re.sub(r"\bconst\b|\s", "", declared), declared.count("*")
    base = base.rstrip("*")
    if base == "char" and stars == 1:
        return ctypes.c_char_p
    if stars == 0:
        return ctypes.c_int if base in ENUMS else SCALARS[base]
    if base in STRUCTS:
        return ctypes.POINTER(STRUCTS[base])
    if base in ENUMS or base in SCALARS:
        return ctypes.POINTER(ctypes.c_int if base in ENUMS else SCALARS[base])
    # Elements and arrays of pointers to them are addresses; a void ** in the header is a result.
    return ctypes.POINTER(ctypes.c_void_p) if (base, stars) == ("void", 2) else ctypes.c_void_p


def declared_type(kind):
    """Numbers are of types that check them, made from C's."""
    return kind.__mro__[1] if kind.__name__ == "Checked" else kind


class Header(unittest.TestCase):
    def test_every_function_is_declared_as_in_the_header(self):
        seen = set()
        for result, name, parameters in prototypes():
            with self.subTest(name):
                function = getattr(c, name)
                self.assertEqual([declared_type(kind) for kind in function.argtypes],
                                 [as_ctypes(p) for p in parameters])
                self.assertEqual(function.restype, as_ctypes(result))
                self.assertEqual(getattr(function, "errcheck", None) is not None, result == "hgemm_status_t")
                seen.add(name)
        declared = {name for name, value in vars(c).items()
                    if re.match("[hb](gem[mv]|syrk)", name) and not isinstance(value, type)}
        self.assertEqual(seen, declared)
        self.assertGreaterEqual(len(seen), 56)

    def test_layout_is_that_of_c(self):
        lines = (SOURCE / "tests/abi/layout.txt").read_text().splitlines()
        ours = []
        for enum in ENUMS.values():
            prefix = PREFIXES.get(enum, "")
            ours += [f"HGEMM_{prefix}{member.name} = {member.value}" for member in enum]
        ours += [f"HGEMM_DEVICE_{name} = {getattr(c, 'DEVICE_' + name)}" for name in ("HOST", "CURRENT")]
        for name, struct in STRUCTS.items():
            ours.append(f"{name}: {ctypes.sizeof(struct)} bytes")
            ours += [f"{name}.{field.rstrip('_')} at {getattr(struct, field).offset}"  # raise_: a keyword in C's name
                     for field, _ in struct._fields_]
        ours[ours.index("HGEMM_NONE = 0")] = "HGEMM_UPLO_NONE = 0"  # the other values have CBLAS's names
        self.assertEqual(sorted(ours), sorted(line for line in lines if line))

    def test_version_is_that_of_the_header(self):
        numbers = re.findall(r"#define HGEMM_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", HEADER.read_text())
        self.assertEqual(hgemm.version, ".".join(numbers))

    def test_defaults_are_those_of_the_library(self):
        args, grouped = c.Args(), c.GroupedArgs()
        self.assertEqual((args.size, args.layout, args.alpha, args.beta, args.batch_count),
                         (ctypes.sizeof(c.Args), c.Layout.COL_MAJOR, 1, 0, 1))
        self.assertEqual((grouped.grouping, grouped.transb), (c.Grouping.CONTIGUOUS, c.Op.TRANS))
        gradient, route, rows = c.GateGradientArgs(), c.RouteArgs(), c.RowsArgs()
        self.assertEqual((gradient.size, gradient.rows, gradient.product, gradient.type_product, gradient.type_of_d),
                         (ctypes.sizeof(c.GateGradientArgs), 0, None, c.Type.F16, c.Type.F16))
        self.assertEqual((route.size, route.tokens, route.chosen, route.ld), (ctypes.sizeof(c.RouteArgs), 0, None, 0))
        self.assertEqual((rows.size, rows.columns, rows.weights, rows.b), (ctypes.sizeof(c.RowsArgs), 0, None, None))
        self.assertEqual({rows.type_a, rows.type_b, rows.type_d, rows.type_weights}, {c.Type.F16})
        exchange, blocks = c.ExchangeArgs(), c.Blocks()
        self.assertEqual((exchange.size, exchange.wait_count, exchange.type_part, exchange.type_d, exchange.d_count),
                         (ctypes.sizeof(c.ExchangeArgs), 0, c.Type.F32, c.Type.F32, 0))
        self.assertEqual((blocks.size, blocks.rows, blocks.first), (ctypes.sizeof(c.Blocks), 0, 0))
        self.assertEqual(c.TuneOptions().size, ctypes.sizeof(c.TuneOptions))
        self.assertEqual(c.TuneReport().size, ctypes.sizeof(c.TuneReport))


if __name__ == "__main__":
    unittest.main()
