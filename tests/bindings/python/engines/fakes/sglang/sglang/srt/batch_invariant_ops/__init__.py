from .batch_invariant_ops import enable_batch_invariant_mode, matmul_persistent

__all__ = ["enable_batch_invariant_mode", "matmul_persistent"]
