import torch
from vllm.model_executor.determinism.batch_invariant import linear_batch_invariant


class UnquantizedLinearMethod:
    def apply(self, layer, x, bias=None):
        return linear_batch_invariant(x, layer.weight, bias)


class LinearBase(torch.nn.Module):
    def __init__(self, input_size, output_size, params_dtype=None, quant_config=None, prefix=""):
        super().__init__()
        self.params_dtype = params_dtype or torch.get_default_dtype()
        self.prefix = prefix
        self.quant_method = quant_config(self) if quant_config else UnquantizedLinearMethod()
        weight = torch.randn(output_size, input_size, generator=torch.Generator().manual_seed(output_size))
        self.weight = torch.nn.Parameter(weight.to(self.params_dtype), requires_grad=False)

    def forward(self, x):
        return self.quant_method.apply(self, x)
