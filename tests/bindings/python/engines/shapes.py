"""Layers that the engines' kernels are compared at: (N, K) of products, mixtures of experts; numbers of rows."""

QWEN3 = {  # vLLM has measured tiles for these
    "qwen3-1.7b gate_up": (12288, 2048), "qwen3-1.7b down": (2048, 6144), "qwen3-1.7b qkv": (4096, 2048),
    "qwen3-1.7b lm_head": (151936, 2048), "qwen3-1.7b o": (2048, 2048),
    "qwen3-4b gate_up": (19456, 2560), "qwen3-4b down": (2560, 9728), "qwen3-4b qkv": (6144, 2560),
    "qwen3-4b lm_head": (151936, 2560), "qwen3-4b o": (2560, 4096),
    "qwen3-8b gate_up": (24576, 4096), "qwen3-8b down": (4096, 12288), "qwen3-8b qkv": (6144, 4096),
    "qwen3-8b lm_head": (151936, 4096), "qwen3-8b o": (4096, 4096),
}
OTHERS = {
    "llama-8b gate_up": (28672, 4096), "llama-8b down": (4096, 14336), "llama-8b lm_head": (128256, 4096),
    "llama-70b qkv, 2 ranks": (5120, 8192), "llama-70b o, 2 ranks": (8192, 4096),
    "llama-70b down, 2 ranks": (8192, 14336), "deepseek-v3 qkv_a": (2112, 7168), "deepseek-v3 router": (256, 7168),
    "qwen3-30b router": (128, 2048), "N is no multiple of 8": (2060, 2048),
}
LAYERS = QWEN3 | OTHERS

TIMED_ROWS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
COMPARED_ROWS = (1, 2, 3, 4, 5, 8, 13, 16, 17, 31, 32, 33, 64, 65, 100, 128, 200, 256, 333, 512, 777, 1024, 1500, 2048)
FEW_ROWS = (1, 7, 16, 100, 2048)  # for what is not bf16 without a bias

EXPERTS = {  # how many, top_k, hidden width, inner width, and whether gates alternate and experts have biases
    "qwen3-30b-a3b": (128, 8, 2048, 768, False), "mixtral-8x7b": (8, 2, 4096, 14336, False),
    "deepseek-v3": (64, 8, 7168, 2048, False), "gpt-oss-20b": (32, 4, 2880, 2880, True),
    "qwen3-235b-a22b": (128, 8, 4096, 1536, False),
}
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384)
