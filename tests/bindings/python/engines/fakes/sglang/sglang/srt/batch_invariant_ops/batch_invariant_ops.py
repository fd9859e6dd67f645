"""Laid out as SGLang's module of this name. Its kernel is planted."""

from planted import split_by_rows


def matmul_persistent(a, b, bias=None, out_dtype=None):
    result = split_by_rows(a, b, out_dtype)
    return result if bias is None else result + bias


def mm_batch_invariant(a, b):
    return matmul_persistent(a, b)


def bmm_batch_invariant(a, b, *, out=None):
    result = split_by_rows(a, b)
    return result if out is None else out.copy_(result)


def enable_batch_invariant_mode(enable_bmm=True):
    pass
