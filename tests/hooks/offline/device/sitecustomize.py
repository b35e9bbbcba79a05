"""For tests without a GPU: starts CUDA on the simulated device in the process under the recorder, and has each MLP of a
Mistral model launch a kernel there. Python imports it from PYTHONPATH."""
import builtins
import os
import sys

_MODELS = "transformers.models.mistral.modeling_mistral"
_import = builtins.__import__


def _kernel():
    """A function that launches a kernel."""
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    import sim_cuda

    cuda, function = sim_cuda.start()
    return lambda: cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None)


def _watch(*arguments, **named):
    module = _import(*arguments, **named)
    models = sys.modules.get(_MODELS)
    if hasattr(models, "MistralForCausalLM"):
        builtins.__import__ = _import
        _launch_in(models.MistralMLP)
    return module


def _launch_in(mlp):
    launch, forward = _kernel(), mlp.forward

    def launch_and_forward(self, x):
        launch()
        return forward(self, x)

    mlp.forward = launch_and_forward


if "LAMINA_OUT" in os.environ:
    builtins.__import__ = _watch
