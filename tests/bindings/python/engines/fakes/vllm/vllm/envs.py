import os


def __getattr__(name):
    if name == "VLLM_BATCH_INVARIANT":
        return os.environ.get(name) == "1"
    raise AttributeError(name)

environment_variables = {}
