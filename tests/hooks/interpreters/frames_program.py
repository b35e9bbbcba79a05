"""The frames that the recorder reads, compared with Python's own: frames_program.py PROBE"""
import contextlib
import ctypes
import functools
import sys
import threading

LIBRARIES = ctypes.CDLL(sys.argv[1]), ctypes.PyDLL(sys.argv[1])  # without the GIL, and with it
for library in LIBRARIES:
    library.read_frames.restype = ctypes.c_char_p
compared = 0


def expected(frame):
    while frame:
        code = frame.f_code
        yield f"{getattr(code, 'co_qualname', code.co_name)}|{code.co_filename}|{frame.f_lineno}"
        frame = frame.f_back


def compare(*_, **__):
    global compared
    for library in LIBRARIES:
        found = library.read_frames().decode().splitlines(); wanted = list(expected(sys._getframe()))[:64]
        assert [line.lstrip(">") for line in found] == wanted, (found, wanted)
        assert len(found) == 64 or found[-1][0] == ">", found
    compared += 1
    return found


class Größe:
    def __init__(self, depth):
        self.depth = depth

    def __call__(self):
        return Größe(self.depth - 1)() if self.depth else compare()

    @property
    def value(self):
        return compare()

    def __getattr__(self, name):
        return compare(name)


def generator():
    yield compare()
    yield from (compare() for _ in range(2))


@contextlib.contextmanager
def context():
    compare()
    yield
    compare()


async def coroutine():
    return compare()


def raises():
    try:
        raise ValueError
    except ValueError:
        return compare()


def all_kinds():
    Größe(3)(), Größe(0).value, Größe(0).other
    Größe(100)()
    list(generator())
    [compare() for _ in range(2)]
    list(map(compare, range(2)))
    sorted([2, 1], key=lambda _: compare() and 0)
    functools.partial(compare, 1)()
    with context():
        compare()
    try:
        coroutine().send(None)
    except StopIteration:
        pass
    raises()
    exec("def made():\n\n  return compare()\nmade()")
    eval("compare()")
    (lambda: compare())()


for _ in range(100):  # so that the interpreter specialises the calls
    all_kinds()
thread = threading.Thread(target=all_kinds)
thread.start()
thread.join()
# Of two calls one is Python's own since 3.11.
found = (lambda: list(map(lambda _: compare(), [1]))[0])()
entries = [line[0] == ">" for line in found[:3]]
assert entries == [sys.version_info < (3, 11), True, sys.version_info < (3, 11)], found
print(compared)
