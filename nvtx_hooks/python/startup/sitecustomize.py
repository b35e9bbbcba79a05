"""First in PYTHONPATH, so that Python imports it at start-up: installs Lamina's hook, then makes room for the sitecustomize
that would have been imported without it."""
import importlib.machinery
import importlib.util
import os
import sys


def _install_hook(folder):
    path = os.path.join(os.path.dirname(folder), "lamina_torch.py")
    spec = importlib.util.spec_from_file_location("lamina_torch", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["lamina_torch"] = module
    spec.loader.exec_module(module)
    module.start()


def _import_other(folder):
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_folder = os.path.dirname(os.path.abspath(__file__))
try:
    _install_hook(_folder)
except Exception as error:
    sys.stderr.write(f"lamina: PyTorch is not hooked: {error}\n")
_import_other(_folder)
