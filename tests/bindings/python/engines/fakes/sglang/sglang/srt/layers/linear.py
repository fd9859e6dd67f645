import torch
from sglang.srt.batch_invariant_ops.batch_invariant_ops import mm_batch_invariant


class UnquantizedLinearMethod:
    def apply(self, layer, x):
        return mm_batch_invariant(x, layer.weight.t())


class LinearBase(torch.nn.Module):
    def __init__(self, input_size, output_size, params_dtype=None, quant_config=None, prefix=""):
        super().__init__()
        self.params_dtype = params_dtype or torch.get_default_dtype()
        self.quant_method = quant_config(self) if quant_config else UnquantizedLinearMethod()
        self.weight = torch.nn.Parameter(torch.randn(output_size, input_size).to(self.params_dtype), requires_grad=False)
