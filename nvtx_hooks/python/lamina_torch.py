"""Installs Lamina's hook in a Python process that uses PyTorch: a range a module call, a range an op or a call of an
extension, step ranges.

start() at interpreter start-up or at any later time. Nothing is hooked when no NVTX tool listens. LAMINA_TORCH chooses
off, modules or ops (default), LAMINA_PHASES=off leaves the step ranges out, LAMINA_EXT=off those of extensions, LAMINA_LOG=debug
says what was done.
"""
import importlib.machinery
import importlib.util
import os
import sys

_TORCH_MODULES = "torch.nn.modules.module"  # defines nn.Module
_HERE = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = os.path.dirname(_HERE)  # lib/lamina, where the hook and the ops libraries lie


def start():
    """Hooks PyTorch now, or when it is imported. Does nothing a second time."""
    wanted = os.environ.get("LAMINA_TORCH", "ops")
    if wanted not in ("off", "modules", "ops"):
        _say(f"LAMINA_TORCH={wanted}: expected off, modules or ops; taking ops")
    if wanted == "off" or _started:
        return
    _started.append(wanted)
    hook = _load_hook()
    if _is_imported(_TORCH_MODULES):
        _install(hook)
    else:
        hook.when_imported(_TORCH_MODULES, lambda: _install(hook))


_started = []


def _say(text):
    sys.stderr.write(f"lamina: {text}\n")


def _debug(text):
    if os.environ.get("LAMINA_LOG") == "debug":
        _say(text)


_hook = []  # the extension, once it is there


# ---- installing


def _is_imported(name):
    module = sys.modules.get(name)
    return module is not None and not getattr(module.__spec__, "_initializing", False)


def _install(hook):
    """Never harms the import it runs in."""
    try:
        if not hook.attached():
            _debug("no NVTX tool listens: PyTorch is not hooked")
            return
        import torch.nn.modules.module as modules
        from torch.nn.parameter import Parameter

        _hook.append(hook)
        hook.read_tensors(Parameter.__base__, Parameter, sys.modules["torch._C"].__file__)
        engines = _sibling("lamina_engines").NAMES if _wants_steps() else ()
        hook.install(modules.Module, Parameter, _on_news, engines)
        for derived in _classes_below(modules.Module):
            hook.see_class(derived)
        _debug("nn.Module calls are ranges")
        if _started[0] != "modules":
            _load_ops()
        _sibling("lamina_extensions").start(hook, _debug)
    except Exception as error:
        _say(f"PyTorch is not hooked: {error}")


def _classes_below(base):
    for derived in base.__subclasses__():
        yield derived
        yield from _classes_below(derived)


def _load_hook():
    path = os.path.join(_LIBRARIES, "lamina_hook.abi3.so")
    loader = importlib.machinery.ExtensionFileLoader("lamina_hook", path)
    spec = importlib.util.spec_from_file_location("lamina_hook", path, loader=loader)
    hook = importlib.util.module_from_spec(spec)
    loader.exec_module(hook)
    return hook


def _load_ops():
    import ctypes

    library = ctypes.CDLL(os.path.join(_LIBRARIES, "lamina_ops.so"))
    library.lamina_ops_load.restype = ctypes.c_char_p
    problem = library.lamina_ops_load()
    if problem:
        _say(problem.decode())
    else:
        _debug("ops are ranges")


def _sibling(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(_HERE, f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# ---- steps


def _wants_steps():
    return os.environ.get("LAMINA_PHASES") != "off"


def _on_news(decodes):
    """Called at the first call of a root that decodes, by when all of torch is imported, and once an engine is there."""
    try:
        if decodes and _wants_steps():
            _find_steps(_hook[0])
        elif not decodes:
            _find_engines()
    except Exception as error:
        _say(f"steps are not found: {error}")


def _find_steps(hook):
    import torch

    capturing = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)
    hook.find_steps((torch.int64, torch.int32), capturing)
    if hasattr(torch.cuda, "CUDAGraph") and capturing:
        hook.watch_graphs(torch.cuda.CUDAGraph)


_engine_steps = []


def _find_engines():
    """An engine is imported long before it calls its model, first for a dry run."""
    if not _engine_steps:
        _engine_steps.append(sys.modules["lamina_engines"].EngineSteps(_hook[0], _say))
    _engine_steps[0].install_new(_is_imported)
