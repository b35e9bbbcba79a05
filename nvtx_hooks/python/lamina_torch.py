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
import weakref

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
    _when_imported(_TORCH_MODULES, _install)


_started = []


def _say(text):
    sys.stderr.write(f"lamina: {text}\n")


def _debug(text):
    if os.environ.get("LAMINA_LOG") == "debug":
        _say(text)


_hook = []  # the extension, once it is there


# ---- waiting for an import


def _is_imported(name):
    module = sys.modules.get(name)
    return module is not None and not getattr(module.__spec__, "_initializing", False)


class _ImportWatcher:
    """A finder that finds nothing itself: it has the module's own loader call `then` once the module is there."""

    def __init__(self, name, then):
        self.name, self.then = name, then

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        loader = spec.loader
        exec_module = loader.exec_module

        def exec_and_tell(module):
            del loader.exec_module
            exec_module(module)
            self.then()

        loader.exec_module = exec_and_tell
        return spec


def _when_imported(name, then):
    """Now, if it is there already."""
    if _is_imported(name):
        then()
    else:
        sys.meta_path.insert(0, _ImportWatcher(name, then))


# ---- installing


def _install():
    """Never harms the import it runs in."""
    try:
        hook = _load_hook()
        if not hook.attached():
            _debug("no NVTX tool listens: PyTorch is not hooked")
            return
        import torch.nn.modules.module as modules
        from torch.nn.parameter import Parameter

        _hook.append(hook)
        hook.install(modules.Module, Parameter, _describe)
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


# ---- names


def _describe(module, callers):
    """(class with its own parameters, instance path, whether it is a root that decodes)

    callers: the modules whose calls are open on this thread, [(module, path)], innermost first. The path is that of the
    innermost one which has the module below it.
    """
    with _NotTraced():
        return _describe_outside(module, callers)


class _NotTraced:
    """torch.jit.trace would take the sizes that are read here into its graph."""

    def __enter__(self):
        self.c = sys.modules["torch"]._C
        self.state = self.c._get_tracing_state()
        if self.state is not None:
            self.c._set_tracing_state(None)

    def __exit__(self, *_):
        if self.state is not None:
            self.c._set_tracing_state(self.state)


def _describe_outside(module, callers):
    name = _class_name(module)
    decodes = False
    if not callers:
        _find_engines()
        path = _root_path(module, name)
        decodes = _decodes(module)
        if decodes:
            _find_steps()
    else:
        path = f"{callers[0][1]}.({name})"
        for caller, caller_path in callers:
            below = _path_below(caller, module)
            if below is not None:
                path = f"{caller_path}.{below}" if below else caller_path
                break
    return name + _parameters_text(module), path, decodes


def _class_name(module):
    # A ScriptModule's class is always RecursiveScriptModule.
    return getattr(module, "original_name", None) or type(module).__name__


def _path_below(root, module):
    """Breadth first: most callers are the parent itself."""
    if root is module:
        return ""
    seen, level = {id(root)}, [("", root)]
    while level:
        below = []
        for prefix, parent in level:
            for name, child in parent._modules.items():
                if child is module:
                    return prefix + name
                if child is not None and id(child) not in seen:
                    seen.add(id(child))
                    below.append((f"{prefix}{name}.", child))
        level = below
    return None


_roots = {}  # class name: weak references to the roots of that class, by number


def _root_path(module, name):
    """Roots of one class are told apart by a number; that of a freed one is free again."""
    if module.__dict__.get("_is_replica"):  # of DataParallel, made anew at each call
        return name
    known = _roots.setdefault(name, [])
    number = next((i for i, root in enumerate(known) if root() is module), None)
    if number is None:
        number = next((i for i, root in enumerate(known) if root() is None), len(known))
        known[number : number + 1] = [weakref.ref(module)]
    return name if number == 0 else f"{name}#{number + 1}"


def _parameters_text(module):
    parameters = module.__dict__.get("_parameters")
    if not isinstance(parameters, dict):
        parameters = dict(module.named_parameters(recurse=False))
    parameters = parameters or module.__dict__.get("_former_parameters") or {}
    texts = [f"{name}={_tensor_text(value)}" for name, value in parameters.items() if value is not None]
    return f"({', '.join(texts)})" if texts else ""


def _tensor_text(tensor):
    try:
        return f"{str(tensor.dtype).removeprefix('torch.')}[{', '.join(map(str, tensor.shape))}]"
    except Exception:  # a lazy parameter has no shape yet
        return "?"


# ---- steps

_engine_steps = []
_root_steps = []


def _find_engines():
    """Called at the first call of each root: an engine is imported long before it calls its model, first for a dry run."""
    if os.environ.get("LAMINA_PHASES") == "off":
        return
    if not _engine_steps:
        _engine_steps.append(_sibling("lamina_engines").EngineSteps(_hook[0], _say))
    _engine_steps[0].install_new(_is_imported)


def _find_steps():
    """Called at the first call of a root that decodes: by then all of torch is imported."""
    if _root_steps or os.environ.get("LAMINA_PHASES") == "off":
        return
    import torch

    hook = _hook[0]
    _root_steps.append(hook)
    capturing = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)
    hook.find_steps(torch.Tensor, (torch.int64, torch.int32), torch._C._get_tracing_state, capturing)
    if hasattr(torch.cuda, "CUDAGraph") and capturing:
        hook.watch_graphs(torch.cuda.CUDAGraph)


_CACHE_ARGUMENTS = {"past_key_values", "past_key_value", "kv_cache", "kv_caches", "cache", "caches", "past", "layer_past",
                    "use_cache", "cache_params", "cache_position", "start_pos", "input_pos"}


def _decodes(module):
    """Whether it takes tokens and gives those that follow: its forward takes a cache, or it has an embedding of as many
    tokens as one of its layers gives."""
    if module.__dict__.get("_is_replica"):
        return False
    return _takes_a_cache(module) or _gives_tokens(module)


def _takes_a_cache(module):
    forward = getattr(type(module), "forward", None)
    while hasattr(forward, "__wrapped__"):
        forward = forward.__wrapped__
    code = getattr(forward, "__code__", None)
    if code is None:
        return False
    count = code.co_argcount + code.co_kwonlyargcount
    return not _CACHE_ARGUMENTS.isdisjoint(code.co_varnames[:count])


def _gives_tokens(module):
    tokens, outputs = set(), set()
    for child in module.modules():
        tokens.add(getattr(child, "num_embeddings", None))
        outputs.add(getattr(child, "out_features", None))
    return not (tokens & outputs) <= {None}
