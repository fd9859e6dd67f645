#!/usr/bin/env python3
"""Compiles device code to PTX by NVRTC, which has nvcc's front end: PyPI has no nvcc before 13.0, but NVRTC.

NVRTC makes an object of each constant, which nvcc does not; those that no code reads are left out.

usage: nvrtc.py <libnvrtc.so.*> <output> <source> <option>...
"""

import collections
import ctypes
import re
import sys

# What the kernels use of the standard library. NVRTC knows none of it, and cannot read the host's.
HEADERS = {
    "cfloat": "#define FLT_MAX 3.402823466e+38f",
    "cstddef": "#define offsetof(type, member) __INTADDR__(&((type*)0)->member)",
    "cstdint": """#pragma once
        #include <cstddef>
        typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
        typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;
        typedef unsigned long uint64_t, uintptr_t;
        #define INT32_MAX 2147483647""",
    "stdint.h": "#include <cstdint>",
    "stdlib.h": "",
    "utility": """#pragma once
        namespace std {
        template <typename A, typename B> struct pair { A first; B second; pair(A a, B b) : first(a), second(b) {} };
        }""",
}


def strings(texts):
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))


def text_of(program, size_of, copy):
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    copy(program, text)
    return text.value


def without_unread_objects(ptx):
    count = collections.Counter(re.findall(rb"(?<![.\w])\w+", ptx))  # no types and modifiers, as in cvt.rn.f16.f32
    return re.sub(rb"^\.global [^=]* (\w+)(\[\d+\])? = .*\n",
                  lambda line: line[0] if count[line[1]] > 1 else b"", ptx, flags=re.MULTILINE)


def main(library, output, source, *options):
    nvrtc = ctypes.CDLL(library)
    program = ctypes.c_void_p()
    with open(source, "rb") as file:
        if nvrtc.nvrtcCreateProgram(ctypes.byref(program), file.read(), source.encode(), len(HEADERS),
                                    strings(HEADERS.values()), strings(HEADERS.keys())):
            sys.exit("nvrtcCreateProgram failed")
    options = ("-std=c++20", "-default-device", *options)
    failed = nvrtc.nvrtcCompileProgram(program, len(options), strings(options))
    sys.stderr.write(text_of(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).decode())
    if failed:
        sys.exit(f"{source}: NVRTC failed")
    with open(output, "wb") as file:
        file.write(without_unread_objects(text_of(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
