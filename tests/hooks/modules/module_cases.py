"""Programs whose module calls must come out as the ranges they say: each case returns, for each thread that calls modules,
the ranges expected, with a `|` for each open one. It also checks what it does itself: results, exceptions, state, pickles.
"""
import copy
import gc
import inspect
import multiprocessing
import pickle
import threading
import time
import warnings

import cases
import torch
from torch import nn

warnings.filterwarnings("ignore")
LINEAR = "Linear(weight=float32[4, 4], bias=float32[4])"


def x():
    return torch.ones(2, 4)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 4)
        self.act = nn.ReLU()

    def forward(self, value):
        return self.act(self.up(value))


def mlp(path, depth=0):
    bars = "|" * depth
    return [f"{bars}MLP @ {path}", f"{bars}|{LINEAR} @ {path}.up", f"{bars}|ReLU @ {path}.act"]


class Net(nn.Module):
    def __init__(self, count=2):
        super().__init__()
        self.layers = nn.ModuleList(MLP() for _ in range(count))
        self.head = nn.Linear(4, 2, bias=False)

    def forward(self, value):
        for layer in self.layers:
            value = layer(value)
        return self.head(value)


def net(path="Net", count=2):
    layers = [line for i in range(count) for line in mlp(f"{path}.layers.{i}", 1)]
    return [f"Net @ {path}"] + layers + [f"|Linear(weight=float32[2, 4]) @ {path}.head"]


# ---- the cases


def case_tree():
    model = Net()
    model(x())
    model(x())
    return [net() * 2]


def case_converted_in_place():
    """Parameters that are other ones without an assignment."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model(x())
    model.double()
    model(x().double())
    double = LINEAR.replace("float32", "float64")
    return [["Sequential @ Sequential", f"|{LINEAR} @ Sequential.0", "|ReLU @ Sequential.1",
             "Sequential @ Sequential", f"|{double} @ Sequential.0", "|ReLU @ Sequential.1"]]


def case_lists_that_change():
    """Their dicts change without an assignment to a module."""
    model = nn.Sequential(nn.ReLU(), nn.Identity(), nn.Tanh())
    model(x())
    del model[0]
    model(x())
    model._modules["0"], model._modules["1"] = model._modules["1"], model._modules["0"]
    model(x())
    name = "Sequential @ Sequential"
    return [[name, "|ReLU @ Sequential.0", "|Identity @ Sequential.1", "|Tanh @ Sequential.2",
             name, "|Identity @ Sequential.0", "|Tanh @ Sequential.1", name, "|Tanh @ Sequential.0", "|Identity @ Sequential.1"]]


def case_attributes_of_the_program():
    """Names that the hook looks at mean what they like in other modules; nothing is asked but what is there."""

    class Adapter(nn.Module):
        def __init__(self, original):
            super().__init__()
            self.original_name = original
            self.out_features = ["stage1", "stage2"]
            self.act = nn.ReLU()

        @property
        def num_embeddings(self):
            raise ArithmeticError

        def __getattr__(self, name):
            asked.append(name)
            return super().__getattr__(name)

        def forward(self, value):
            return self._modules["act"](value)

    asked = []
    for original in ("layers.3.mlp", 7):
        model = Adapter(original)
        asked.clear()
        model(x())
        assert not set(asked) & {"original_name", "out_features", "num_embeddings", "_modules"}, asked
        del model
        gc.collect()
    return [["Adapter @ Adapter", "|ReLU @ Adapter.act"] * 2]


def case_signal_handlers():
    """What a handler raises while modules are called for the first time arrives."""
    import signal

    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    for _ in range(20):
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        try:
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                nn.Sequential(*[nn.Identity() for _ in range(100)])(x())
            raise AssertionError("what a signal handler raised was lost")
        except Stop:
            pass
    signal.signal(signal.SIGALRM, before)
    return "any"


def case_tensor_modes():
    """A mode of the program is not told of what the hook reads."""
    if torch.__version__ < "2.1":
        return []
    from torch.overrides import TorchFunctionMode

    class Count(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    seen = []
    with Count():
        nn.Linear(4, 4)(torch.ones(1, 4))
    assert not any("shape" in function or "dtype" in function for function in seen), seen
    return [[f"{LINEAR} @ Linear"]]


def case_roots_of_one_class():
    """Told apart by a number, which is free again when its root is."""
    first, second = Net(1), Net(1)
    second(x())
    first(x())
    del second
    gc.collect()
    third = Net(1)
    third(x())
    first(x())
    return [net("Net", 1) + net("Net#2", 1) + net("Net", 1) + net("Net#2", 1)]


def case_reused_addresses():
    """Modules that come and go: each is called what it is, though it lies where another one was."""
    expected = []
    for i in range(300):
        model = nn.Linear(4, 4) if i % 2 else nn.ReLU()
        model(x())
        expected.append(f"{LINEAR} @ Linear" if i % 2 else "ReLU @ ReLU")
        del model
    return [expected]


def case_submodule_as_root():
    """Called on its own before and after the whole: by its class, and by its place."""
    model = Net(1)
    model.layers[0](x())
    model(x())
    model.layers[0](x())
    return [mlp("MLP") + net("Net", 1) + mlp("MLP")]


def case_shared():
    """One module in two places: named by the one that its caller has below it."""

    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            norm = nn.ReLU()
            self.first = nn.Sequential(norm)
            self.second = nn.Sequential(norm)

        def forward(self, value):
            return self.second(self.first(value))

    Shared()(x())
    return [["Shared @ Shared", "|Sequential @ Shared.first", "||ReLU @ Shared.first.0", "|Sequential @ Shared.second",
             "||ReLU @ Shared.second.0"]]


def case_not_registered():
    """In a plain list, which no module knows of."""

    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = [MLP()]

        def forward(self, value):
            return self.hidden[0](value)

    Hidden()(x())
    return [["Hidden @ Hidden"] + mlp("Hidden.(MLP)", 1)]


def case_late_and_replaced():
    model = Net(1)
    model(x())
    model.layers.append(MLP())
    model.head = nn.Linear(4, 4)
    model(x())
    model.layers[0].up.weight = nn.Parameter(torch.ones(3, 4, dtype=torch.float64), requires_grad=False)
    model.layers[0].up = nn.Identity()
    model(x())
    later = net("Net", 2)[:-1] + [f"|{LINEAR} @ Net.head"]
    last = [line.replace(f"{LINEAR} @ Net.layers.0.up", "Identity @ Net.layers.0.up") for line in later]
    return [net("Net", 1) + later + last]


def case_replaced_parameter():
    layer = nn.Linear(4, 4)
    layer(x())
    layer.weight = nn.Parameter(torch.ones(3, 4))
    layer.bias = None
    layer(x())
    return [[f"{LINEAR} @ Linear", "Linear(weight=float32[3, 4]) @ Linear"]]


def case_moved():
    """A child that moves to another place is called by that."""
    model = Net(2)
    model(x())
    model.layers[0], model.layers[1] = model.layers[1], model.layers[0]
    model(x())
    return [net() * 2]


def case_own_call():
    """Classes with a __call__ of their own: one range, whether it goes on to Module's or not, made before or after."""

    class Passing(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def __call__(self, value):
            return super().__call__(value)

        def forward(self, value):
            return value

    class Starred(Passing):
        def __call__(self, *values, **names):
            return super().__call__(*values, **names)

    class Alone(Passing):
        def __call__(self, value):
            return self.act(value)

    class Recursive(Passing):
        def __call__(self, value, times=1):
            return nn.Module.__call__(self, value, times)

        def forward(self, value, times):
            return self(value, times - 1) if times else self.act(value)

    for kind in (Passing, Starred, Alone, Recursive):
        kind()(x())
    return [["Passing @ Passing", "Starred @ Starred", "Alone @ Alone", "|ReLU @ Alone.act", "Recursive @ Recursive",
             "|Recursive @ Recursive", "||ReLU @ Recursive.act"]]


def case_recursive():
    class Again(nn.Module):
        def forward(self, value, times):
            return self(value, times - 1) if times else value

    Again()(x(), 2)
    return [["Again @ Again", "|Again @ Again", "||Again @ Again"]]


def case_exceptions():
    class Failing(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, value):
            self.act(value)
            raise ValueError("of the program")

    class Careful(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Failing()
            self.act = nn.ReLU()

        def forward(self, value):
            try:
                self.inner(value)
            except ValueError as error:
                assert str(error) == "of the program"
            return self.act(value)

    Careful()(x())
    try:
        nn.Module()(x())
        raise AssertionError("no forward, and no exception")
    except NotImplementedError:
        pass
    return [["Careful @ Careful", "|Failing @ Careful.inner", "||ReLU @ Careful.inner.act", "|ReLU @ Careful.act",
             "Module @ Module"]]


def case_threads():
    model = Net(1)
    for _ in range(3):
        thread = threading.Thread(target=model, args=(x(),))
        thread.start()
        thread.join()
    return [net("Net", 1)] * 3


def case_many_threads():
    """At once: every thread has the ranges of its own calls."""
    model = Net(2)
    barrier = threading.Barrier(4)

    def work():
        barrier.wait()
        for _ in range(50):
            model(x())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [net() * 50] * 4


def case_forked_workers():
    model = Net(1)
    model(x())
    context = multiprocessing.get_context("fork")
    queue = context.Queue()

    def work():
        queue.put(model(x()).shape[1])

    worker = context.Process(target=work)
    worker.start()
    assert queue.get(timeout=60) == 2
    worker.join()
    assert worker.exitcode == 0
    return [net("Net", 1) * 2]  # one log is open in both processes


def case_nothing_is_changed():
    """No attribute, state, pickle, repr or function of the program is another one."""
    model = Net(1)

    def state():
        return pickle.dumps(model), repr(model), sorted(vars(model)), sorted(dir(model)), list(model.state_dict())

    before = state()
    model(x())
    assert state() == before
    clone = copy.deepcopy(model)
    assert torch.equal(clone(x()), model(x()))
    assert torch.equal(pickle.loads(pickle.dumps(model))(x()), model(x()))
    call = nn.Module.__call__
    assert inspect.isfunction(call) and call.__module__ == "torch.nn.modules.module", call
    assert inspect.getsource(call).lstrip().startswith("def ")
    assert "lamina" not in inspect.getsource(nn.modules.module)
    one = net("Net", 1)
    return [one + net("Net#2", 1) + one + net("Net#3", 1) + one]


def case_hooks():
    """The program's own forward hooks run inside of the range."""
    model = Net(1)
    calls = []
    model.register_forward_hook(lambda *_: calls.append(nn.ReLU()(x())))
    model(x())
    assert len(calls) == 1
    return [net("Net", 1) + ["|ReLU @ Net.(ReLU)"]]


def case_modes():
    model = Net(1)
    with torch.inference_mode():
        model(x())
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert model(x()).dtype == torch.bfloat16
    model.eval()(x())
    return [net("Net", 1) * 3]


def case_meta():
    with torch.inference_mode():
        model = Net(1).to("meta")
        assert model(torch.ones(2, 4, device="meta")).is_meta
    return [net("Net", 1)]


def case_lazy():
    layer = nn.LazyLinear(4, bias=False)
    layer(x())
    layer(x())
    return [["LazyLinear(weight=?) @ LazyLinear", "Linear(weight=float32[4, 4]) @ Linear"]]


def case_quantised():
    model = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 4)), {nn.Linear}, dtype=torch.qint8)
    model(x())
    # Quantising calls an observer of the weights.
    return [["MinMaxObserver @ MinMaxObserver", "Sequential @ Sequential", "|Linear @ Sequential.0"]]


def case_adapter():
    """As LoRA wraps a layer."""

    class Lora(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base_layer = base
            self.lora_A = nn.ModuleDict({"default": nn.Linear(4, 1, bias=False)})
            self.lora_B = nn.ModuleDict({"default": nn.Linear(1, 4, bias=False)})

        def forward(self, value):
            return self.base_layer(value) + self.lora_B["default"](self.lora_A["default"](value))

    model = MLP()
    model(x())
    model.up = Lora(model.up)
    model(x())
    return [mlp("MLP") + ["MLP @ MLP", "|Lora @ MLP.up", f"||{LINEAR} @ MLP.up.base_layer",
                          "||Linear(weight=float32[1, 4]) @ MLP.up.lora_A.default",
                          "||Linear(weight=float32[4, 1]) @ MLP.up.lora_B.default", "|ReLU @ MLP.act"]]


def case_script():
    """A ScriptModule is one range, by the name of its own class; what it calls is inside of the interpreter."""
    scripted = torch.jit.script(MLP())
    original = MLP()
    traced = torch.jit.trace(original, x(), check_trace=False)
    scripted(x())
    traced(x())
    return [mlp("MLP") + ["MLP @ MLP#2", "MLP @ MLP#3"]]


def case_traced_while_named():
    """The first calls of modules come inside of torch.jit.trace: nothing of ours is in its graph."""
    model = Net(1)
    traced = torch.jit.trace(model, x())
    nodes = [node.kind() for node in traced.inlined_graph.nodes()]
    assert "aten::size" not in nodes, nodes
    return [net("Net", 1) * 3]  # traced, then run and traced again to check it


def case_fx():
    model = Net(1)
    graph = torch.fx.symbolic_trace(model)
    result = graph(x())
    assert torch.equal(result, model(x()))
    # Tracing calls the modules of the root, leaves excepted. A GraphModule is called after the class that was traced, and
    # calls the leaves.
    leaves = [f"|{LINEAR} @ Net.layers.0.up", "|ReLU @ Net.layers.0.act", "|Linear(weight=float32[2, 4]) @ Net.head"]
    return [["MLP @ MLP", "Net @ Net"] + leaves + net("Net#2", 1)]


def case_data_parallel():
    """Its threads call replicas that are made anew each time."""
    replicas = []
    model = Net(1)
    for _ in range(2):
        replica = model._replicate_for_data_parallel()
        replica.layers = nn.ModuleList([])
        replica.head = nn.Identity()
        replicas.append(replica)
        thread = threading.Thread(target=replica, args=(x(),))
        thread.start()
        thread.join()
    return [["Net @ Net", "|Identity @ Net.head"]] * 2


if __name__ == "__main__":
    cases.run(globals())
