"""Calls of extension functions whose ranges must be found: each case returns those expected, of each thread.

Some modules are imported before the hook is there, others after it.
"""
import gc
import importlib
import importlib.util
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = os.environ["EXTENSIONS"].split(":") + [os.path.join(HERE, "..", "modules")]
import pb2_ops  # noqa: E402
import raw_ops  # noqa: E402
from pb2_ops import add as early_add  # noqa: E402
from raw_ops import fast as early_fast  # noqa: E402
from raw_ops import one as early_one  # noqa: E402

EARLY = {function: (id(function), hash(function), repr(function)) for function in (early_add, early_fast, early_one)}


class Meta(type):
    """Of classes that do not want to be looked at."""

    def __getattribute__(cls, name):
        raise AssertionError(f"asked for {name}")


class Thing(metaclass=Meta):
    def __getattribute__(self, name):
        raise AssertionError(f"asked for {name}")

    def __repr__(self):
        raise AssertionError("asked for its text")


# Where the hook looks for functions, and finds another behind them.
pb2_ops.thing, pb2_ops.Thing = Thing(), Thing
pb2_ops.take = vars(pb2_ops).pop("take")


def fast_many_times(times):
    for _ in range(times):
        early_fast(1)


fast_many_times(100)  # so that the interpreter has specialised the call

import cases  # noqa: E402  (with torch: the hook comes here)
import torch  # noqa: E402

import cpu_ops  # noqa: E402
import nb_ops  # noqa: E402
import pb3_ops  # noqa: E402

BOUND = (pb2_ops, pb3_ops, nb_ops)
TORCH = tuple(map(int, torch.__version__.split(".")[:2]))
X = torch.ones(4, 8, dtype=torch.bfloat16)


def name(module):
    return module.__name__.partition(".")[0]


def text(module, call):
    return f"{name(module)}.{call} <- {name(module)}.so"


def of_each(calls, modules=BOUND):
    return [[text(module, call) for module in modules for call in calls]]


# ---- texts


def case_arguments():
    parameter = torch.nn.Parameter(torch.ones(2))
    for module in BOUND:
        module.take(X, torch.ones(4, dtype=torch.int64), 3, "auto", None, [parameter], k=2.5)
        module.take(True, (1, False), [], {}, torch.float32, torch.device("cpu"), 1j, b"b", range(3), X.shape)
        module.take(torch.ones(()), torch.ones(0, 3), torch.ones(2, 2).to_sparse(), torch.ones(2, device="meta"))
    return of_each(["take(bfloat16[4, 8], int64[4], int, 'auto', None, [float32[2]], k=float)",
                    "take(True, (int, False), [], dict, dtype, device, complex, bytes, range, Size)",
                    "take(float32[], float32[0, 3], float32[2, 2], float32[2])"])


def case_dtypes():
    names = "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 bool"
    names = names.split() + [name for name in ("float8_e4m3fn", "float8_e5m2") if hasattr(torch, name)]
    for dtype in names:
        raw_ops.one(torch.empty(2, dtype=getattr(torch, dtype)))
    return of_each([f"one({dtype}[2])" for dtype in names], [raw_ops])


def case_strings():
    for string in ("it", "a\nb", "é" * 100, "x" * 48, "x" * 49, "x" * 1000000, "", "\ud800"):
        raw_ops.one(string)
    shown = ["'it'", "'a b'", "'" + "é" * 24 + "...'", "'" + "x" * 48 + "'", "'" + "x" * 48 + "...'", "'" + "x" * 48 + "...'",
             "''", "str"]
    return of_each([f"one({string})" for string in shown], [raw_ops])


def case_long_lists():
    deep = [X]
    for _ in range(6):
        deep = [deep]
    raw_ops.one([X] * 20)
    raw_ops.one(tuple(range(9)))
    raw_ops.one(deep)
    raw_ops.fast(*[torch.ones([1] * 10)] * 60)
    raw_ops.fast(*["x" * 48] * 60)
    tensor = "float32[" + ", ".join(["1"] * 10) + "]"
    strings = ", ".join(["'" + "x" * 48 + "'"] * 60)[: 1024 - len("raw_ops.fast(...) <- raw_ops.so")]
    return of_each(["one([" + "bfloat16[4, 8], " * 8 + "...])", "one((" + "int, " * 8 + "...))", "one([[[[[...]]]]])",
                    "fast(" + f"{tensor}, " * 14 + "...)", f"fast({strings}...)"], [raw_ops])


def case_cyclic_list():
    cyclic = []
    cyclic.append(cyclic)
    raw_ops.one(cyclic)
    return of_each(["one([[[[[...]]]]])"], [raw_ops])


def case_type_names():
    """By the name of the type, whatever that type does when it is asked."""

    class Number(int):
        pass

    raw_ops.fast(pb2_ops.thing, Number(3), lambda: 0, raw_ops)
    return of_each(["fast(Thing, Number, function, module)"], [raw_ops])


def case_growing_shapes():
    """Of so many shapes a call has its own text; from then on what differs is left open."""
    for length in range(1, 101):
        raw_ops.fast_named(X, torch.ones(2, length), k=torch.ones(length))
    raw_ops.fast_named(X, torch.ones(2, 5), k=torch.ones(5))
    raw_ops.fast_named(X, torch.ones(5), k=None)
    exact = [f"fast_named(bfloat16[4, 8], float32[2, {length}], k=float32[{length}])" for length in range(1, 65)]
    return of_each(exact + ["fast_named(bfloat16[4, 8], float32[2, *], k=float32[*])"] * 36 +
                   [exact[4], "fast_named(bfloat16[4, 8], float32[5], k=None)"], [raw_ops])


# ---- tensors that are not to be touched


def case_subclasses():
    """Neither their code nor that of a mode is run."""
    asked = []

    class Wrapper(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            asked.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

        @property
        def shape(self):
            asked.append("shape")

    raw_ops.one(torch.ones(2).as_subclass(Wrapper))
    asked.clear()
    raw_ops.one(torch.ones(2).as_subclass(Wrapper))
    assert not asked, asked
    return of_each(["one(Wrapper)"] * 2, [raw_ops])


def case_modes():
    """Reading a tensor is not told to a mode of the program."""
    if TORCH < (1, 13):
        return [[]]
    from torch.overrides import TorchFunctionMode

    asked = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            asked.append(function)
            return function(*args, **(kwargs or {}))

    with Mode():
        raw_ops.one(X)
        assert not asked, asked
        X.neg()
        assert asked == [torch.Tensor.neg], asked
    raw_ops.one(X)
    return of_each(["one(bfloat16[4, 8])" if TORCH >= (2, 0) else "one(Tensor)", "one(bfloat16[4, 8])"], [raw_ops])


def case_traced():
    """torch.jit.trace does not see that sizes are read."""
    traced = torch.jit.trace(lambda x: raw_ops.one(x)[0] * 2, torch.ones(3), check_trace=False)
    kinds = [node.kind() for node in traced.graph.nodes()]
    assert "aten::mul" in kinds and "aten::size" not in kinds, kinds
    return of_each(["one(Tensor)"], [raw_ops])


def case_symbolic():
    """Nor do make_fx and fake tensors."""
    if TORCH < (2, 0):
        return [[]]
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(lambda x: raw_ops.one(x)[0] * 2, tracing_mode="symbolic")(torch.ones(3))
    assert "size" not in graph.code, graph.code
    return of_each(["one(FakeTensor)"], [raw_ops])


def case_functorch():
    if TORCH < (2, 0):
        return [[]]
    torch.func.vmap(lambda x: raw_ops.one(x)[0])(torch.ones(2, 3))
    return of_each(["one(float32[3])"], [raw_ops])


def case_unsized():
    if not hasattr(torch, "nested"):
        return [[]]
    raw_ops.one(torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)]))
    return of_each(["one(float32[?])"], [raw_ops])


# ---- functions


def case_kinds_of_functions():
    """More often than it takes the interpreter to specialise a call."""
    one, named = (X,), {"k": X}
    for _ in range(50):
        assert raw_ops.nothing() == []
        assert raw_ops.one(X)[0] is X
        assert raw_ops.tuple(X, 1) == [X, 1]
        assert raw_ops.tuple_named(1, k=2) == [1, ("k", 2)]
        assert raw_ops.fast(X, 1) == [X, 1]
        assert raw_ops.fast_named(1, k=2) == [1, ("k", 2)]
        assert raw_ops.tuple_named(*one, **named) == raw_ops.fast_named(*one, **named) == [X, ("k", X)]
    x = "bfloat16[4, 8]"
    return of_each(["nothing()", f"one({x})", f"tuple({x}, int)", "tuple_named(int, k=int)", f"fast({x}, int)",
                    "fast_named(int, k=int)", f"tuple_named({x}, k={x})", f"fast_named({x}, k={x})"] * 50, [raw_ops])


def case_called_by_others():
    import functools

    list(map(raw_ops.one, (1, 2)))
    functools.partial(raw_ops.fast, 1)(2)
    functools.partial(pb2_ops.add, 1)(2)
    sorted([2, 1], key=pb2_ops.one)
    early = raw_ops.call
    early(pb3_ops.add, 1, 2)
    return [[text(raw_ops, "one(int)")] * 2 + [text(raw_ops, "fast(int, int)"), text(pb2_ops, "add(int, int)")] +
            [text(pb2_ops, "one(int)")] * 2 +
            [text(raw_ops, "call(builtin_function_or_method, int, int)"), "|" + text(pb3_ops, "add(int, int)")]]


def case_names_imported_earlier():
    early_add(1, 2)
    early_one(1)
    fast_many_times(3)
    for function, facts in EARLY.items():
        assert facts == (id(function), hash(function), repr(function)), function
    assert early_one is raw_ops.one and early_add is pb2_ops.add
    assert EARLY[raw_ops.one] and raw_ops.one in {early_one} and raw_ops.one == early_one and raw_ops.one != raw_ops.fast
    return [[text(pb2_ops, "add(int, int)"), text(raw_ops, "one(int)")] + [text(raw_ops, "fast(int)")] * 3]


def case_defaults_and_overloads():
    for module in BOUND:
        assert module.scale(X).startswith("auto2.0") and module.scale(X, mode="m", factor=3).startswith("m3.0")
        assert module.pick(1) == "int" and module.pick("x") == "str"
        try:
            module.pick([])
            raise AssertionError("no overload takes a list")
        except TypeError:
            pass
        module.pick_more(module)
        assert module.pick([]) == "list" and module.pick(1) == "int"
    # nanobind makes a new function of all overloads.
    calls = ["scale(bfloat16[4, 8])", "scale(bfloat16[4, 8], mode='m', factor=int)", "pick(int)", "pick('x')", "pick([])",
             "pick_more(module)"]
    return [[text(module, call) for module in BOUND
             for call in calls + (["pick([])", "pick(int)"] if module is not nb_ops else [])]]


def case_methods():
    for module in BOUND:
        engine = module.Engine(3)
        assert engine.run(X, times=2) == 6 and engine(X) == 3 and module.Engine.make(2).size == 2 and repr(engine) == "an engine"
        run = engine.run
        assert run(X) == 3
    return of_each(["Engine.__init__(Engine, int)", "Engine.run(Engine, bfloat16[4, 8], times=int)",
                    "Engine.__call__(Engine, bfloat16[4, 8])", "Engine.make(int)", "Engine.run(Engine, bfloat16[4, 8])"])


def case_modules_in_modules():
    for module in BOUND:
        assert module.sub.one(X) is X
        assert module.alias is module.one and module.alias(1) == 1
    return of_each(["sub.one(bfloat16[4, 8])", "one(int)"])


def case_not_hooked():
    """Without CUDA, imported from elsewhere, in memory that can not be written, made later."""
    assert cpu_ops.one(1) == [1] and cpu_ops.tuple(1) == [1] and raw_ops.sqrt(4) == 2 and raw_ops.fixed(1) == [1]
    made = raw_ops.make()
    assert made(1) == [1]
    return of_each(["make()"], [raw_ops])


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def case_loaded_by_path():
    """As torch.utils.cpp_extension does; the module of the same file that is there already goes on."""
    other = load("of_path.raw_ops", raw_ops.__file__)
    other.one(1)
    raw_ops.one(1)
    assert other.one is not raw_ops.one and other.one != raw_ops.one
    return [["of_path.raw_ops.one(int) <- raw_ops.so", "raw_ops.one(int) <- raw_ops.so"]]


def case_reloaded():
    for module in BOUND + (raw_ops,):
        before = module.one
        assert importlib.reload(module) is module
        before(1)
        module.one(1)
    return of_each(["one(int)", "one(int)"], BOUND + (raw_ops,))


def case_freed():
    """What comes to lie in the place of a freed function is another function."""
    other = load("of_path.raw_ops", raw_ops.__file__)
    other.one(1)
    places = {id(value) for value in vars(other).values()}
    del other
    gc.collect()
    made = [raw_ops.make() for _ in range(2000)]
    assert places & {id(function) for function in made}, "no place was taken again"
    for function in made:
        assert function(1) == [1]
    del made
    other = load("of_path.raw_ops", raw_ops.__file__)
    other.fast(1)
    return [["of_path.raw_ops.one(int) <- raw_ops.so"] + [text(raw_ops, "make()")] * 2000 + ["of_path.raw_ops.fast(int) <- raw_ops.so"]]


# ---- what happens inside


def case_nested():
    def inner():
        return [module.call(lambda: raw_ops.one(X)[0]) for module in BOUND]

    raw_ops.call(inner)
    return [[text(raw_ops, "call(function)")] +
            [line for module in BOUND for line in ("|" + text(module, "call(function)"), "||" + text(raw_ops, "one(bfloat16[4, 8])"))]]


def case_recursive():
    def again(times):
        return raw_ops.call(again, times - 1) if times else pb3_ops.call(raw_ops.nothing)

    again(3)
    return [["|" * depth + text(raw_ops, "call(function, int)") for depth in range(3)] +
            ["|||" + text(pb3_ops, "call(builtin_function_or_method)"), "||||" + text(raw_ops, "nothing()")]]


def case_exceptions():
    """Ranges are closed, and the program's exceptions are its own. (What they say is compared by facts_program.py.)"""
    error = ValueError("of the program")

    def fails():
        raise error

    for module in BOUND + (raw_ops,):
        try:
            module.call(fails)
            raise AssertionError("no exception")
        except ValueError as caught:
            assert caught is error
    return of_each(["call(function)"], BOUND + (raw_ops,))


def case_threads():
    """At once, without the GIL inside."""
    barrier = threading.Barrier(4)

    def work():
        barrier.wait()
        for module in BOUND + (raw_ops,):
            module.wait(20)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return of_each(["wait(int)"], BOUND + (raw_ops,)) * 4


def case_in_modules():
    class Net(torch.nn.Module):
        def forward(self, x):
            return pb2_ops.one(x)

    Net()(X)
    return [["Net @ Net", "|" + text(pb2_ops, "one(bfloat16[4, 8])")]]


if __name__ == "__main__":
    cases.run(globals())
