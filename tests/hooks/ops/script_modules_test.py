"""The ranges of modules that TorchScript runs; part of ops_test.py."""
import time

import torch
from nvtx_events import pushes, record, tree


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.act = torch.nn.ReLU()

    def helper(self, x):
        return self.act(x)

    def forward(self, x):
        return self.helper(self.fc(x)) + x


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Block()
        self.layers = torch.nn.ModuleList([Block(), Block()])
        self.head = torch.nn.Sequential(torch.nn.Linear(4, 4))

    def forward(self, x):
        x = self.a(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x) * 2

    @torch.jit.export
    def encode(self, x):
        return self.a(x)


class Failing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)


class TwoLists(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.ModuleList([torch.nn.ReLU()])
        self.second = torch.nn.ModuleList([torch.nn.ReLU()])

    def forward(self, x):
        for layer in self.first:
            x = layer(x)
        for layer in self.second:
            x = layer(x)
        return x


@torch.jit.interface
class OneToOne(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class CallsAnInterface(torch.nn.Module):
    inner: OneToOne  # not inlined: a function that the interpreter calls

    def __init__(self):
        super().__init__()
        self.inner = Block()
        self.act = torch.nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.inner.forward(self.act(x)))


PLAIN, SCRIPTED = torch.nn.Linear(4, 4), []


class CallsPython(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.act = torch.nn.ReLU()

    @torch.jit.ignore
    def python(self, x: torch.Tensor) -> torch.Tensor:
        return SCRIPTED[0](PLAIN(x)) + 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.python(self.act(x)))


EXPECTED = [
    ("Block @ Net.a", None), ("Linear @ Net.a.fc", "Block @ Net.a"), ("ReLU @ Net.a.act", "Block @ Net.a"),
    ("Block @ Net.layers.0", None), ("Linear @ Net.layers.0.fc", "Block @ Net.layers.0"),
    ("ReLU @ Net.layers.0.act", "Block @ Net.layers.0"),
    ("Block @ Net.layers.1", None), ("Linear @ Net.layers.1.fc", "Block @ Net.layers.1"),
    ("ReLU @ Net.layers.1.act", "Block @ Net.layers.1"),
    ("Sequential @ Net.head", None), ("Linear @ Net.head.0", "Sequential @ Net.head"),
]


def is_module(text):
    return " @ " in text


def check_net(net, x, expected):
    # The first runs are of other graphs than the later ones: PyTorch looks on, then optimises.
    for i in range(4):
        got = []
        modules = tree(lambda: got.append(net(x)), only=is_module)
        assert modules == EXPECTED, f"run {i}: {modules}"
        assert torch.allclose(got[0], expected)
    by_op = dict(tree(lambda: net(x), only=lambda text: is_module(text) or text.startswith("aten::linear")))
    assert by_op["aten::linear(float32[2, 4], float32[4, 4], float32[4])"] == "Linear @ Net.head.0", by_op


def scripted_modules():
    torch.manual_seed(1)
    net, x = Net().eval(), torch.randn(2, 4)
    scripted = torch.jit.script(net)
    check_net(scripted, x, net(x))  # with a gradient, whose graph runs in an interpreter of its own
    with torch.no_grad():
        check_net(scripted, x, net(x))
    modules = tree(lambda: scripted.encode(x), only=is_module)
    assert modules[:2] == [("Net @ Net", None), ("Block @ Net.a", "Net @ Net")], modules


def traced_modules():
    net, x = Net().eval(), torch.randn(2, 4)
    with torch.no_grad():
        check_net(torch.jit.trace(net, x), x, net(x))


def frozen_modules():
    net = torch.jit.freeze(torch.jit.script(Net().eval()))
    record(lambda: [net(torch.randn(2, 4)) for _ in range(3)])


def modules_in_plain_modules():
    outer = torch.nn.Sequential(torch.jit.script(Net().eval()), torch.nn.ReLU())
    with torch.no_grad():
        assert tree(lambda: outer(torch.randn(2, 4)), only=is_module) == EXPECTED


def modules_that_look_alike():
    with torch.no_grad():
        modules = tree(lambda: torch.jit.script(TwoLists())(torch.ones(2)), only=is_module)
    assert modules == [("ReLU @ TwoLists.?.0", None)], modules


def functions_in_functions():
    with torch.no_grad():
        net = torch.jit.script(CallsAnInterface())
        inner = "Block @ CallsAnInterface.inner"
        for _ in range(4):
            modules = tree(lambda: net(torch.ones(2, 4)), only=is_module)
            assert modules == [("ReLU @ CallsAnInterface.act", None), (inner, None),
                               ("Linear @ CallsAnInterface.inner.fc", inner), ("ReLU @ CallsAnInterface.inner.act", inner),
                               ("ReLU @ CallsAnInterface.act", None)], modules
        SCRIPTED.append(torch.jit.script(Failing()))
        net = torch.jit.script(CallsPython())
        modules = tree(lambda: net(torch.ones(2, 4)), only=is_module)
    assert modules == [("ReLU @ CallsPython.act", None), ("Linear @ Failing.fc", None), ("ReLU @ CallsPython.act", None)], modules


def exceptions_in_scripts():
    net = torch.jit.script(Failing())

    def run():
        for _ in range(3):
            try:
                net(torch.ones(2, 7))
            except RuntimeError:
                pass
    assert pushes(run).count("Linear @ Failing.fc") == 3


def script_functions():
    @torch.jit.script
    def twice(x):
        return x + x

    def wait_for_it(x):
        return torch.jit.wait(torch.jit.fork(twice, x))

    texts = pushes(lambda: twice(torch.ones(2)))
    assert texts[-2:] == ["twice(float32[2])", "aten::add(float32[2], float32[2], 1)"], texts
    waiting = torch.jit.script(wait_for_it)

    def run():
        for _ in range(20):
            waiting(torch.ones(2))
        time.sleep(0.3)  # the function's end may come from another thread, after it gave its result
        torch.ones(3)
    record(run)


TESTS = [scripted_modules, traced_modules, frozen_modules, modules_in_plain_modules, modules_that_look_alike,
         functions_in_functions, exceptions_in_scripts, script_functions]
