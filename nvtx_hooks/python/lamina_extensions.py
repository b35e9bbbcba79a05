"""Ranges for the functions of extension modules: finds the functions, of modules that are loaded and of those to come.

LAMINA_EXT: `off`, or globs over `module.function`, comma-separated, of any extension. Without it all functions of
extensions whose library uses CUDA.
"""
import fnmatch
import os
import struct
import sys
from types import BuiltinFunctionType, ModuleType

# Packages that have ranges otherwise (PyTorch's ops), or whose calls are no work of the program's own.
_LEFT_OUT = {"torch", "functorch", "triton", "cupy", "cupy_backends", "pynvml", "cuda", "nvtx", "lamina_hook"}


def start(hook, debug):
    """`hook`: the extension lamina_hook; `debug`: takes a line. Never harms the import it runs in."""
    wanted = os.environ.get("LAMINA_EXT", "")
    if wanted == "off":
        return
    try:
        extensions = Extensions(hook, debug, [glob.strip() for glob in wanted.split(",") if glob.strip()])
        hook.watch_extensions(extensions.see)
        extensions.see(*sys.modules.values())
    except Exception as error:
        debug(f"functions of extensions have no ranges: {error}")


class Extensions:
    def __init__(self, hook, debug, globs):
        self.hook, self.debug, self.globs = hook, debug, globs
        self.unfinished = [module for module in list(sys.modules.values()) if _is_unfinished(module)]

    def see(self, *modules):
        """Hooks the functions of those that are extensions; also of what was in the middle of its import when we came."""
        for module in (*self.unfinished, *modules):
            try:
                self._see(module)
            except Exception as error:
                self.debug(f"functions of {object.__repr__(module)} have no ranges: {error}")

    def _see(self, module):
        path = _attributes(module).get("__file__") if _is_module(module) else None
        if not isinstance(path, str) or not path.endswith(".so") or module.__name__.partition(".")[0] in _LEFT_OUT:
            return
        if not self.globs and not uses_cuda(path):
            return
        for name, function in _functions(module, module.__name__, module, set()):
            if not self.globs or any(fnmatch.fnmatchcase(name, glob) for glob in self.globs):
                self._hook(function, name, os.path.basename(path))

    def _hook(self, function, name, file):
        try:
            if self.hook.hook_extension_function(function, name, file):
                self.debug(f"{name} of {file} has ranges")
        except RuntimeError as error:
            self.debug(f"{name} of {file} has no ranges: {error}")


# ---- the functions of a module. Nothing is asked in a way that a class or a module could answer by code of its own.

_name_of_type = type.__dict__["__name__"].__get__
_attributes_of_type = type.__dict__["__dict__"].__get__


def _is_module(value):
    return issubclass(type(value), ModuleType)


def _is_class(value):
    return issubclass(type(value), type)


def _attributes(scope):
    return object.__getattribute__(scope, "__dict__") if _is_module(scope) else _attributes_of_type(scope)


def _is_unfinished(module):
    return _is_module(module) and getattr(_attributes(module).get("__spec__"), "_initializing", False)


def _functions(scope, name, root, seen):
    """(name, function) of what the scope (the module `root`, or what is in it) defines, methods of its classes too."""
    seen.add(id(scope))
    for key, value in list(_attributes(scope).items()):
        if _name_of_type(type(value)) in ("instancemethod", "staticmethod"):
            value = value.__func__
        if _is_native(type(value)):
            # Not what was imported from elsewhere.
            own = _is_within(value.__module__, root) or getattr(value, "__self__", None) is root
            if own and not _is_plumbing(key):
                yield f"{name}.{key}", value
        elif id(value) not in seen and _is_module(value) and _is_within(_attributes(value).get("__name__"), root):
            yield from _functions(value, _attributes(value)["__name__"], root, seen)
        elif id(value) not in seen and _is_class(value) and _is_within(_attributes(value).get("__module__"), root):
            yield from _functions(value, f"{name}.{key}", root, seen)


def _is_native(kind):
    """A function of the C API or pybind11, or of nanobind."""
    return kind is BuiltinFunctionType or (
        _name_of_type(kind) in ("nb_func", "nb_method") and _attributes_of_type(kind).get("__module__") == "nanobind")


def _is_within(module, root):
    return f"{module}.".startswith(f"{root.__name__}.")


def _is_plumbing(name):
    return name.startswith(("__", "_pybind11_")) and name not in ("__init__", "__call__")


# ---- the library of a module

_CUDA_LIBRARIES = (b"libcudart", b"libcuda.so", b"libcublas", b"libcudnn", b"libnvrtc", b"libc10_cuda", b"libtorch_cuda")
_CUDA_SECTIONS = {b".nv_fatbin", b"__nv_relfatbin"}


def uses_cuda(path):
    """Whether an ELF file has device code, or is linked to a library of CUDA."""
    try:
        with open(path, "rb") as file:
            elf = _Elf(file)
            return any(name in _CUDA_SECTIONS for name in elf.sections()) or any(
                name.startswith(_CUDA_LIBRARIES) for name in elf.needed())
    except (OSError, struct.error, ValueError, OverflowError):
        return False


class _Elf:
    """A 64-bit little-endian ELF file, as far as it is asked here. Whatever is in it, what is read is bounded."""

    _MOST = 1 << 20
    _DYNAMIC, _NEEDED = 6, 1  # SHT_DYNAMIC, DT_NEEDED

    def __init__(self, file):
        self.file = file
        header = self._read(0, 64)
        if header[:6] != b"\x7fELF\x02\x01":
            raise ValueError("another format")
        (place,) = struct.unpack_from("<Q", header, 0x28)
        size, count, self.names = struct.unpack_from("<HHH", header, 0x3A)
        if size != 64:
            raise ValueError("section headers of another size")
        # Of each: name, type, flags, address, offset, size, link, info, alignment, size of an entry.
        self.headers = list(struct.iter_unpack("<IIQQQQIIQQ", self._read(place, size * count)))

    def sections(self):
        for header in self.headers:
            yield self._name(self.names, header[0])

    def needed(self):
        for header in self.headers:
            if header[1] == self._DYNAMIC:
                for tag, value in struct.iter_unpack("<qQ", self._read(header[4], header[5])):
                    if tag == self._NEEDED:
                        yield self._name(header[6], value)

    def _read(self, place, size):
        if size > self._MOST:
            raise ValueError("too large")
        self.file.seek(place)
        return self.file.read(size)

    def _name(self, table, place):
        if table >= len(self.headers):
            raise ValueError("no such section")
        return self._read(self.headers[table][4] + place, 256).partition(b"\0")[0]
