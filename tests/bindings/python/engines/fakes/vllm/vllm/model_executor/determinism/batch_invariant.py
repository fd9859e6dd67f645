"""Laid out as vLLM's module of this name. Its kernel is planted."""

from planted import split_by_rows
from vllm import envs

started = 0


def matmul_persistent(a, b, bias=None):
    result = split_by_rows(a, b)
    return result if bias is None else result + bias


def mm_batch_invariant(a, b, bias=None):
    return matmul_persistent(a, b, bias=bias)


def bmm_batch_invariant(a, b, *, out=None):
    result = split_by_rows(a, b)
    return result if out is None else out.copy_(result)


def linear_batch_invariant(input, weight, bias=None):
    rows = mm_batch_invariant(input.reshape(-1, input.shape[-1]), weight.t(), bias=bias)
    return rows.view(*input.shape[:-1], rows.shape[-1])


def enable_batch_invariant_mode():
    global started
    started += 1


def init_batch_invariance():
    if envs.VLLM_BATCH_INVARIANT:
        enable_batch_invariant_mode()
