"""First in PYTHONPATH, so that Python imports it at start-up: installs Lamina's hook, then makes room for the sitecustomize
that would have been imported without it. Any Python may read this, also one that is too old for the hook."""
import os
import sys


def _install_hook(folder):
    import importlib.util

    path = os.path.join(os.path.dirname(folder), "lamina_torch.py")
    spec = importlib.util.spec_from_file_location("lamina_torch", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["lamina_torch"] = module
    spec.loader.exec_module(module)
    module.start()


def _import_other(ours):
    del sys.modules["sitecustomize"]
    try:
        import sitecustomize
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") not in (None, "sitecustomize"):
            raise  # it is there, and misses something itself
    sys.modules.setdefault("sitecustomize", ours)


_folder = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _folder]
if sys.version_info >= (3, 10):
    try:
        _install_hook(_folder)
    except Exception as error:
        sys.stderr.write("lamina: PyTorch is not hooked: %s\n" % error)
_import_other(sys.modules["sitecustomize"])
