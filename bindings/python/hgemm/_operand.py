"""Matrices in memory, and the arguments of a product of them."""

from __future__ import annotations

from typing import NamedTuple

from .c import Activation, Args, Bias, Layout, Op, Type, Uplo

NAMES = {Type.F16: "float16", Type.BF16: "bfloat16", Type.F32: "float32"}
ROW, COL = Layout.ROW_MAJOR, Layout.COL_MAJOR
ACTIVATIONS: dict[str | None, Activation] = {None: Activation.NONE} | {each.name.lower(): each for each in Activation}


class Operand(NamedTuple):
    """A matrix, or a batch of them: its last two dimensions are rows and columns. Strides count elements."""
    type: Type
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def leading(operand: Operand, layout: Layout) -> int | None:
    """The leading dimension of a matrix as BLAS stores it in this layout; None: it is not stored so."""
    lines, length = operand.shape[-2:]
    between, along = operand.strides[-2:]
    if layout == COL:
        lines, length, between, along = length, lines, along, between
    shortest = max(1, length)
    if lines == 0 or length == 0:
        return shortest
    if length > 1 and along != 1:
        return None
    if lines == 1:
        return shortest
    return between if between >= shortest else None


def transposed(operand: Operand) -> Operand:
    """Each matrix of it, in the same memory."""
    *batch, rows, columns = range(len(operand.shape))
    order = [*batch, columns, rows]
    return operand._replace(shape=tuple(operand.shape[i] for i in order),
                            strides=tuple(operand.strides[i] for i in order))


def fits(operand: Operand) -> bool:
    """Can BLAS read it where it is?"""
    return leading(operand, ROW) is not None or leading(operand, COL) is not None


def activation_of(name: str | Activation | None) -> Activation:
    """From its name in lower case, such as "gelu_tanh"."""
    if isinstance(name, Activation):
        return name
    if not isinstance(name, (str, type(None))) or name not in ACTIVATIONS:
        raise ValueError(f"activation: {name!r}, must be one of {', '.join(map(str, ACTIVATIONS))}")
    return ACTIVATIONS[name]


def _of_input(name: str, operand: Operand, layout: Layout) -> tuple[int, Op]:
    ld = leading(operand, layout)
    if ld is not None:
        return ld, Op.NO_TRANS
    ld = leading(operand, COL if layout == ROW else ROW)
    if ld is not None:
        return ld, Op.TRANS
    raise ValueError(f"{name}: its strides {operand.strides} (in elements) are not those of a row- or column-major "
                     f"matrix of shape {operand.shape}; pass a contiguous copy")


def _of_output(name: str, operand: Operand, layout: Layout) -> int:
    ld = leading(operand, layout)
    if ld is None:
        raise ValueError(f"{name}: its strides {operand.strides} (in elements) are not those of a matrix of shape "
                         f"{operand.shape} in the layout of the result, {layout.name}")
    return ld


def _batch_stride(name: str, operand: Operand, batch: int) -> int:
    if len(operand.shape) == 2:
        return 0
    if operand.shape[0] != batch:
        raise ValueError(f"{name}: a batch of {operand.shape[0]}, must be {batch}")
    return operand.strides[0]


def require_dimensions(name: str, operand: Operand) -> None:
    if len(operand.shape) not in (2, 3):
        raise ValueError(f"{name}: its shape is {operand.shape}, must have 2 or 3 dimensions")


def require_shape(name: str, operand: Operand, rows: int, columns: int) -> None:
    require_dimensions(name, operand)
    if operand.shape[-2:] != (rows, columns):
        raise ValueError(f"{name}: its shape is {operand.shape}, must end with {(rows, columns)}")


def sizes(a: Operand, b: Operand) -> tuple[int, int, int]:
    """M, N and K of a product of these."""
    require_dimensions("a", a)
    if a.type == Type.F32:
        raise TypeError("a: its elements are float32, must be float16 or bfloat16")
    if b.type != a.type:
        raise TypeError(f"b: its elements are {NAMES[b.type]}, must be {NAMES[a.type]} as those of a")
    m, k = a.shape[-2:]
    n = b.shape[-1] if b.shape else 0
    require_shape("b", b, k, n)
    return m, n, k


def gemm_args(a: Operand, b: Operand, d: Operand, *, c: Operand | None = None, bias: Operand | None = None,
              aux: Operand | None = None, alpha: float = 1.0, beta: float = 0.0,
              activation: Activation = Activation.NONE, symmetric: bool = False) -> Args:
    """The arguments of D = activation(alpha * A * B + beta * C + bias), without addresses.

    A is M x K, B is K x N, and C, D and aux are M x N. If D has three dimensions, it is a batch, and A, B, C and bias
    are batches or shared by all problems. The bias is of shape N, (1, N) or (M, 1), or a batch of the last two.
    symmetric: the caller knows that D is, and half of it is computed. Raises ValueError, which names the argument.
    """
    m, n, k = sizes(a, b)
    require_shape("out", d, m, n)
    args = Args()
    layout = ROW if leading(d, ROW) is not None else COL
    args.layout, args.type_ab, args.type_d = layout, a.type, d.type
    args.m, args.n, args.k, args.alpha, args.beta = m, n, k, alpha, beta
    args.lda, args.transa = _of_input("a", a, layout)
    args.ldb, args.transb = _of_input("b", b, layout)
    args.ldd = _of_output("out", d, layout)
    args.type_c = d.type
    if c is not None:
        require_shape("c", c, m, n)
        args.type_c, args.ldc = c.type, _of_output("c", c, layout)
    if aux is not None:
        require_shape("aux", aux, m, n)
        if aux.type != d.type:
            raise TypeError(f"aux: its elements are {NAMES[aux.type]}, must be {NAMES[d.type]} as those of the result")
        args.ldaux = _of_output("aux", aux, layout)
    if bias is not None:
        args.bias_type, args.bias_mode = bias.type, _bias_mode(bias, m, n)
    args.activation = activation
    if symmetric:
        args.uplo = Uplo.BOTH
    if len(d.shape) == 3:
        batch = args.batch_count = d.shape[0]
        args.stride_a, args.stride_b = _batch_stride("a", a, batch), _batch_stride("b", b, batch)
        args.stride_d = d.strides[0]
        if c is not None:
            args.stride_c = _batch_stride("c", c, batch)
        if aux is not None:
            args.stride_aux = _batch_stride("aux", aux, batch)
        if bias is not None:
            args.stride_bias = _batch_stride("bias", bias, batch) if len(bias.shape) == 3 else 0
    elif len(a.shape) == 3 or len(b.shape) == 3:
        raise ValueError(f"out: its shape is {d.shape}, must have a batch as that of a or b")
    return args


def _bias_mode(bias: Operand, m: int, n: int) -> Bias:
    shape = bias.shape[-2:] if len(bias.shape) > 1 else (1, *bias.shape)
    if shape == (1, n):
        mode, length, stride = Bias.N, n, bias.strides[-1]
    elif shape == (m, 1):
        mode, length, stride = Bias.M, m, bias.strides[-2]
    else:
        raise ValueError(f"bias: its shape is {bias.shape}, must be {(n,)}, {(1, n)} or {(m, 1)}")
    if stride != 1 and length > 1:
        raise ValueError("bias: its elements are not contiguous")
    return mode
