#!/usr/bin/env python3
"""Kernels and settings of version 0.1, which older result files have, as version 0.2 spells them.

    xz -dc h200_sm90_ways.txt.xz | old_names.py | hgemm-candidates describe
"""

import re
import sys

RULES = [(re.compile(old), new) for old, new in [
    (r"\bsm90_pp_", "sm90_pingpong_"),
    (r"\bsm90_gsplit_", "sm90_splitk_global_"),
    (r"\bsm90_split_(?=\d)", "sm90_splitk_"),
    (r"\bsm90_(?=\d+x\d)", "sm90_coop_"),
    (r"\bsm90_direct_(\d+x[124])(?=_|\b)", r"sm90_gemv_\1"),
    (r"\b(sm90_\w*?\dx\d+)_c(\d)x(\d)", r"\1_\2x\3"),
    (r"\b(sm90_\w*?\dx\d+)_c(\d)(?![\dx])", r"\1_\2x1"),
    (r"\b(sm90_\w*?\dx\d+)_r(\d)", r"\1_occ\2"),
    (r"\bsm100_pair_", "sm100_2cta_"),
    (r"\bsm100_split_(?=\d)", "sm100_splitk_"),
    (r"\b(sm100_\w*?\dx\d+)_s\b", r"\1_static"),
    # What follows a kernel's name in HGEMM_KERNEL.
    (r"/plain\b", "/swap_ab=0"),
    (r"/swapped\b", "/swap_ab=1"),
    (r"/whole\b", "/stream_k=0"),
    (r"/stream\b", "/stream_k=1"),
    (r"/(late|early)\b", r"/pdl=\1"),
    (r"/alone\b", "/pdl=off"),
]]


def new_names(text):
    """The text with the kernels of 0.1 in it, and their settings, renamed."""
    for old, new in RULES:
        text = old.sub(new, text)
    return text


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(new_names(line))
