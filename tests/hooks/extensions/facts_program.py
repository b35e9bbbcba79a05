"""All that a program can see of extension functions, as JSON: must be the same with and without the hook."""
import gc
import inspect
import json
import os
import pickle
import re
import sys
import traceback

sys.path[:0] = os.environ["EXTENSIONS"].split(":")
import pb2_ops  # noqa: E402
import raw_ops  # noqa: E402
import torch  # noqa: E402

import nb_ops  # noqa: E402
import pb3_ops  # noqa: E402

BOUND = (pb2_ops, pb3_ops, nb_ops)
MODULES = BOUND + (raw_ops,)


def plain(value):
    return re.sub(r"0x[0-9a-f]+", "#", str(value))


def attempt(function, *arguments, **named):
    """What it returns, or the exception with its traceback."""
    try:
        return plain(function(*arguments, **named))
    except BaseException:  # pylint: disable=broad-except
        return plain(traceback.format_exc())


def functions():
    for module in MODULES:
        for name, value in sorted(vars(module).items()):
            if callable(value):
                yield f"{module.__name__}.{name}", value
    for module in BOUND:
        for name in ("run", "make", "__init__", "__call__"):
            yield f"{module.__name__}.Engine.{name}", vars(module.Engine)[name]


def appearance(function):
    names = ("__name__", "__qualname__", "__module__", "__doc__", "__text_signature__", "__self__", "__class__")
    facts = {name: attempt(getattr, function, name) for name in names}
    facts.update(repr=plain(repr(function)), signature=attempt(inspect.signature, function), dir=dir(function),
                 size=sys.getsizeof(function), references=sys.getrefcount(function), callable=inspect.isbuiltin(function),
                 pickle=attempt(pickled, function), hash=attempt(same_hash, function))
    return facts


def pickled(function):
    return [pickle.loads(pickle.dumps(function, protocol)) is function for protocol in range(2, 6)]


def same_hash(function):
    """That of a builtin function is made of its self and its code."""
    return isinstance(hash(function), int) and {function: 1}[function]


def failures():
    for module in BOUND:
        for kind in ("index", "value", "else"):
            yield f"{module.__name__}.fail({kind})", attempt(module.fail, kind)
        yield f"{module.__name__}.add()", attempt(module.add)
        yield f"{module.__name__}.add(str)", attempt(module.add, "x", 2)
        yield f"{module.__name__}.add(k)", attempt(module.add, 1, k=2)
        yield f"{module.__name__}.scale(twice)", attempt(module.scale, 1, 2.0, factor=3.0)
        yield f"{module.__name__}.take(non-string)", attempt(module.take, **{"a b": 1})
        yield f"{module.__name__}.Engine", attempt(module.Engine, "x")
    yield "raw.nothing(1)", attempt(raw_ops.nothing, 1)
    yield "raw.nothing(k)", attempt(raw_ops.nothing, k=1)
    yield "raw.one()", attempt(raw_ops.one)
    yield "raw.one(1, 2)", attempt(raw_ops.one, 1, 2)
    yield "raw.tuple(k)", attempt(raw_ops.tuple, k=1)
    yield "raw.fast(k)", attempt(raw_ops.fast, k=1)
    for error in (ValueError, KeyboardInterrupt, StopIteration, SystemExit):
        yield f"raw.fail({error.__name__})", attempt(raw_ops.fail, error, "of the extension")
    for _ in range(20):
        last = attempt(raw_ops.wrong)
    yield "raw.wrong()", last


def depth_of_recursion(module):
    """How deep calls through the module go until Python says that it is enough. (Python 3.11 does not count calls that it
    has specialised, which these can not be.)"""
    deepest = 0

    def again(depth):
        nonlocal deepest
        deepest = depth
        module.call(*(again, depth + 1))

    try:
        again(0)
    except RecursionError as error:
        return deepest, str(error)
    return None


def profiled():
    """What a profile function is told."""
    told = []
    sys.setprofile(lambda frame, event, argument: told.append((event, plain(argument))))
    try:
        raw_ops.one(1)
        raw_ops.fast(1, 2)
        raw_ops.tuple(1)
        pb2_ops.add(1, 2)
        pb3_ops.add(1, 2)
        nb_ops.add(1, 2)
    finally:
        sys.setprofile(None)
    return told


def references():
    """Of what is given and returned, after many calls."""
    x, key = torch.ones(2), "mode"
    counts = []
    for module in MODULES:
        for function in (module.one, module.sub.one if module in BOUND else module.fast):
            for _ in range(100):
                function(x)
            counts.append((sys.getrefcount(x), sys.getrefcount(function)))
    for module in BOUND:
        for _ in range(100):
            module.take(x, k=x)
            module.scale(x, mode=key)
            attempt(module.add, x, x)
        counts.append((sys.getrefcount(x), sys.getrefcount(module.take)))
    for _ in range(100):
        raw_ops.tuple_named(x, k=x)
        attempt(raw_ops.tuple, k=x)
    gc.collect()
    return counts + [sys.getrefcount(x)]


def main():
    for _ in range(50):  # so that calls are specialised
        raw_ops.one(1), raw_ops.fast(1), raw_ops.fast_named(1), pb3_ops.add(1, 2)
    facts = {name: appearance(function) for name, function in functions()}
    facts.update(failures())
    facts.update({f"{module.__name__} depth": depth_of_recursion(module) for module in MODULES})
    facts["profiled"] = profiled()
    facts["references"] = references()
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
