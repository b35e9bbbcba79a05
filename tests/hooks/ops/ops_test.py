"""What the observer of ops emits, in one PyTorch:
  PYTHON ops_test.py LIBRARY NVTX_LOG_LIBRARY [TEST...]
LIBRARY is a lamina_ops-*.so that fits the PyTorch of PYTHON, NVTX_LOG_LIBRARY is nvtx_log.so."""
import ctypes
import os
import sys
import tempfile
import threading

if "NVTX_LOG" not in os.environ:  # NVTX looks for its tool once, so that it is named before the first call
    log = tempfile.NamedTemporaryFile(prefix="nvtx_log_")
    os.environ.update(NVTX_LOG=log.name, NVTX_INJECTION64_PATH=os.path.abspath(sys.argv[2]))
    sys.exit(os.spawnv(os.P_WAIT, sys.executable, [sys.executable, *sys.argv]))

import torch
from nvtx_events import pushes, record, tree

LIBRARY = ctypes.CDLL(sys.argv[1])
LIBRARY.lamina_ops_torch_version.restype = ctypes.c_char_p
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
OPS = torch.library.Library("lamina_test", "DEF")


def define(name, arguments, run):
    """A custom op lamina_test::name that gives a Tensor."""
    OPS.define(f"{name}({arguments}) -> Tensor")
    OPS.impl(name, run, "CompositeExplicitAutograd")
    return getattr(torch.ops.lamina_test, name)


def text_of(run):
    """Of the outermost op."""
    return pushes(run, max_depth=0)[0]


def equal(got, expected):
    assert got == expected, f"\n     got {got}\nexpected {expected}"


# ---- must be the first: the observer is started here

def started_inside_of_an_op():
    def start(x):
        before = torch.add(x, 1)
        for _ in range(2):
            equal(LIBRARY.lamina_ops_start(), 0)
        return torch.mul(before, before)

    op = define("start", "Tensor x", start)
    texts = pushes(lambda: op(torch.ones(3)))
    assert "aten::mul(float32[3], float32[3])" in texts and not any("start" in text or "add" in text for text in texts), texts
    assert torch.__version__.startswith(LIBRARY.lamina_ops_torch_version().decode()[:4])


# ---- arguments

def tensors_and_scalars():
    a, b = torch.ones(4, 8, dtype=torch.bfloat16), torch.ones(8, 2, dtype=torch.bfloat16)
    equal(text_of(lambda: torch.mm(a, b)), "aten::mm(bfloat16[4, 8], bfloat16[8, 2])")
    c = torch.ones(2)
    equal(text_of(lambda: torch.add(c, c, alpha=2)), "aten::add(float32[2], float32[2], 2)")
    equal(text_of(lambda: torch.ones(())), "aten::ones([], None, None, cpu, False)")
    x = torch.ones(())
    equal(text_of(lambda: x.neg()), "aten::neg(float32[])")


def views_have_no_ranges():
    x = torch.ones(4, 6)
    texts = pushes(lambda: x.view(6, 4).t()[1:, None].expand(3, 5, 6).permute(2, 0, 1).narrow(0, 1, 2).squeeze().split(1))
    equal(texts, [])
    # What may copy has one, and so has the copy.
    texts = pushes(lambda: x.t().reshape(24))
    assert [text.split("(")[0] for text in texts][:2] == ["aten::reshape", "aten::clone"], texts
    assert any("aten::conj_physical" in text for text in pushes(lambda: torch.ones(2, dtype=torch.complex64).conj().resolve_conj()))
    # By the whole name only.
    op = define("view", "Tensor a", lambda a: a.clone())
    equal(text_of(lambda: op(x)), "lamina_test::view(float32[4, 6])")


def dtypes():
    names = "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 bool"
    newer = "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e8m0fnu uint16 uint32 uint64"
    for name in names.split() + [name for name in newer.split() if hasattr(torch, name)]:
        x = torch.empty(2, dtype=getattr(torch, name))
        equal(text_of(lambda: x.repeat(2, 1)), f"aten::repeat({name}[2], [2, 1])")


def all_kinds():
    op = define("kinds", "Tensor a, Tensor? b, int i, float f, bool g, str s, int[] l, float[] fl, Tensor[] tl, Tensor?[] o, "
                "Device d, ScalarType t, Scalar c, *, bool[] bl, str[] sl, int? n=None, Generator? gen=None",
                lambda a, *_, **__: a.clone())
    x, y = torch.ones(2, dtype=torch.int32), torch.ones(3)
    text = text_of(lambda: op(x, None, -3, 0.5, True, "it", [1, 2], [0.5, 2.0], [x, y], [None, x],
                              torch.device("cpu"), torch.float32, 2 + 1.5j, bl=[True], sl=["a", "b"],
                              gen=torch.Generator()))
    equal(text, "lamina_test::kinds(int32[2], None, -3, 0.5, True, 'it', [1, 2], [0.5, 2.0], [int32[2], float32[3]], "
          "[None, int32[2]], cpu, 6, (2+1.5j), [True], ['a', 'b'], None, Generator)")


def floats():
    op = define("floats", "Tensor a, float f", lambda a, f: a.clone())
    x = torch.ones(1)
    values = [1.0, 0.5, 1e-05, 0.0001, 123456.789, 1e15, 1e16, 1e22, 1.5e300, 5e-324, 0.1 + 0.2, -0.0, 100.0, 2 / 3,
              float("inf"), float("-inf"), float("nan"), 1.7976931348623157e308, 123456789012345680.0]
    for value in values:
        equal(text_of(lambda: op(x, value)), f"lamina_test::floats(float32[1], {value!r})")


def long_lists_and_texts():
    op = define("lists", "Tensor[] a, int[] b, str s", lambda a, b, s: a[0].clone())
    x = torch.ones(2)
    equal(text_of(lambda: op([x] * 20, list(range(40)), "é" * 100)),
          "lamina_test::lists([" + "float32[2], " * 8 + "...], [" + "".join(f"{i}, " for i in range(16)) + "...], '" +
          "é" * 24 + "...')")
    many = define("many", ", ".join(f"Tensor t{i}" for i in range(60)), lambda *a: a[0].clone())
    y = torch.ones([1] * 10)
    text = text_of(lambda: many(*[y] * 60))
    assert len(text) <= 1024 and text.endswith("...)"), text
    with_lines = define("with_lines", "Tensor a, str s", lambda a, s: a.clone())
    equal(text_of(lambda: with_lines(x, "a\nb")), "lamina_test::with_lines(float32[2], 'a b')")


def unusual_tensors():
    x = torch.ones(4, 4)
    quantised = torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)
    equal(text_of(lambda: quantised.dequantize()), "aten::dequantize(quint8[4, 4])")
    equal(text_of(lambda: x.to("meta")).split(",")[0], "aten::to(float32[4")
    meta = torch.empty(3, 2, device="meta")
    equal(text_of(lambda: meta.neg()), "aten::neg(float32[3, 2])")
    for sparse in (x.to_sparse(), x.to_sparse_csr()):
        assert "float32[4, 4]" in text_of(lambda: torch.mm(sparse, x))
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    texts = pushes(lambda: nested.clone())
    assert any("float32[?]" in text for text in texts), texts
    view = torch.ones(2, 2).expand(3, 2, 2).conj()
    record(lambda: (view + 1, torch.zeros(0).sum(), torch.empty_strided((2,), (0,)).sum()))


def subclasses_and_transforms():
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            return function(*[a.inner if isinstance(a, Wrapper) else a for a in args], **(kwargs or {}))

    x = torch.ones(2, 3)
    assert "aten::sin(float32[2, 3])" in pushes(lambda: torch.sin(Wrapper(x)))
    if TORCH < (2, 0):
        return
    texts = pushes(lambda: torch.func.vmap(lambda a: a.sin())(x))
    assert "aten::sin(float32[2, 3])" in texts, texts
    jagged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
    assert any("float32[?]" in text for text in pushes(lambda: jagged.sin()))
    compiled = torch.compile(lambda a: a.sin() + a.shape[0], backend="aot_eager", dynamic=True)
    got = []
    record(lambda: got.extend([compiled(torch.ones(3, 4)), compiled(torch.ones(7, 4))]))
    assert torch.equal(got[1], torch.ones(7, 4).sin() + 7)


# ---- nesting, threads, ends

def nested_ops():
    texts = tree(lambda: torch.nn.functional.linear(torch.ones(1, 2, 3), torch.ones(4, 3)))
    parents = dict(texts)
    equal(texts[-1][0] in parents and parents["aten::linear(float32[1, 2, 3], float32[4, 3], None)"], None)
    assert any(parent and parent.startswith("aten::linear") for _, parent in texts), texts


def user_scopes():
    def run():
        with torch.profiler.record_function("my step\n2"):
            torch.ones(2)
            with torch.profiler.record_function("inner"):
                pass
    equal(pushes(run, "default"), ["my step\\n2", "inner"])
    assert all(event.text == "" or "my step" not in event.text for event in record(run) if event.domain == "lamina")


def user_scope_that_ends_elsewhere():
    def run():
        future = torch.futures.Future()
        with torch.autograd.profiler.record_function("waits") as scope:
            scope._call_end_callbacks_on_future(future)
        thread = threading.Thread(target=lambda: future.set_result(1))
        thread.start(), thread.join()
        with torch.profiler.record_function("next"):
            pass
    equal(pushes(run, "default"), ["waits", "next"])


def exceptions():
    def run():
        for _ in range(3):
            try:
                with torch.profiler.record_function("fails"):
                    torch.mm(torch.ones(2, 3), torch.ones(2, 3))
            except RuntimeError:
                pass
    equal([text for text in pushes(run) if "mm" in text], ["aten::mm(float32[2, 3], float32[2, 3])"] * 3)


def many_threads():
    def work():
        for i in range(50):
            torch.mm(torch.ones(2, i + 1), torch.ones(i + 1, 2))
    threads = [threading.Thread(target=work) for _ in range(8)]

    def run():
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    texts = [text for text in pushes(run) if text.startswith("aten::mm")]
    equal(len(texts), 8 * 50)
    equal(len(set(texts)), 50)


def disabled_on_a_thread():
    def run():
        torch._C._autograd._enable_record_function(False)
        torch.ones(3)
        torch._C._autograd._enable_record_function(True)
        torch.zeros(3)
    equal([text[:11] for text in pushes(run, max_depth=0)], ["aten::zeros"])


def asynchronous_events():
    distributed = torch.distributed
    if not distributed.is_available():
        return print("    no torch.distributed here")
    distributed.init_process_group("gloo", rank=0, world_size=1, store=distributed.HashStore())
    events = record(lambda: distributed.all_reduce(torch.ones(4), async_op=True).wait())
    distributed.destroy_process_group()
    starts = [event for event in events if event.kind == "start"]
    assert starts and starts[0].domain == "lamina" and "float32[4]" in starts[0].text, events


# ---- bounds

def growing_shapes_are_bounded():
    count = define("count", "Tensor a, int i, float f", lambda a, i, f: a.clone())

    def decode():
        for length in range(1, 501):
            torch.bmm(torch.ones(2, 1, 8), torch.ones(2, 8, length))
            count(X1, 7, float(length))
    texts = pushes(decode)
    bmm = [text for text in texts if text.startswith("aten::bmm")]
    assert len(set(bmm)) == 65, len(set(bmm))
    equal(bmm[63:65], ["aten::bmm(float32[2, 1, 8], float32[2, 8, 64])", "aten::bmm(float32[2, 1, 8], float32[2, 8, *])"])
    equal(bmm[-1], bmm[64])
    assert "lamina_test::count(float32[2, 1, 8], 7, *)" in texts
    # What differs later is added to the pattern, once for each place.
    more = pushes(lambda: [torch.bmm(torch.ones(2, n, 8), torch.ones(2, 8, 600)) for n in range(2, 90)])
    equal(set(text for text in more if "bmm" in text), {"aten::bmm(float32[2, *, 8], float32[2, 8, *])"})
    equal(text_of(lambda: torch.bmm(X1, X2)), "aten::bmm(float32[2, 1, 8], float32[2, 8, 5])")


X1, X2 = torch.ones(2, 1, 8), torch.ones(2, 8, 5)


def results_are_the_same():
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8))
    x = torch.randn(4, 8)
    torch._C._autograd._enable_record_function(False)
    expected = net(x)
    torch._C._autograd._enable_record_function(True)
    got = []
    record(lambda: got.append(net(x)))
    assert torch.equal(got[0], expected)
    record(lambda: got[0].sum().backward())


TESTS = [started_inside_of_an_op, tensors_and_scalars, dtypes, all_kinds, floats, long_lists_and_texts, unusual_tensors,
         subclasses_and_transforms, nested_ops, user_scopes, user_scope_that_ends_elsewhere, exceptions, many_threads,
         disabled_on_a_thread, asynchronous_events, growing_shapes_are_bounded, results_are_the_same]


def main():
    import script_modules_test
    failed = 0
    tests = {test.__name__: test for test in TESTS + script_modules_test.TESTS}
    for name in [TESTS[0].__name__] + (sys.argv[3:] or list(tests)[1:]):
        try:
            tests[name]()
            print("ok  ", name)
        except Exception as error:
            failed += 1
            print("FAIL", name, type(error).__name__, error)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
