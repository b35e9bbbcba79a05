"""Layerwise JSON made by hand, for the tests of the page: a node is {"name", "time", "children"}."""
import json


def kernel(name, time):
    return {"name": name, "time": time, "children": []}


def layer(name, children):
    return {"name": name, "time": sum(child["time"] for child in children), "children": children}


def deep(levels):
    node = kernel("leaf", 1)
    for level in range(levels):
        node = layer(f"level {level}", [node, kernel(f"beside {level}", 0.5)])
    return node


def large(count):
    """A model of at least so many rows, no two alike; some kernels much longer than others."""
    blocks = []
    for number in range(count // 31 + 1):
        linears = [layer(f"Linear_{i}(weight=bfloat16[{64 * i + 64}, 4096])",
                         [kernel(f"void cutlass::gemm_{(number * 7 + i * 5 + j) % 97}<{j}>(Params)", 0.5 + (number * 31 + i * 7 + j * 3) % 13 ** (j % 3)) for j in range(5)])
                   for i in range(5)]
        blocks.append(layer(f"Block.x{number}", linears))
    return layer("Model", [layer(f"Stage_{i}", blocks[i::40]) for i in range(40)])


HARM = "window.harmed=1"
NAMES = [
    f"</script><script>{HARM}</script>", f"<img src=x onerror={HARM}>", f'"><b class=evil onclick="{HARM}">', "<!-- <script>", "]]>", "&lt;b&gt;&amp;",
    "line\u2028two\u2029three\r\nfour", "\u202eright to left\u202c", "\x01\x02\x1b[31m\x7f\u009b", "x" * 100_000, "", " ", "__proto__", "constructor", "'`${1}",
    "=cmd|' /C calc'!A0", "\ud83d\ude00 émoji", "%s%n", "\\u003c\\", "toString", "a,b;c\t\"d\"", "-1", "\ufeffmark",
]
HOSTILE = {name or "unnamed": [layer(name, [kernel(other, 1) for other in NAMES]) for name in NAMES] for name in NAMES}
HOSTILE_CONTEXT = {name: name for name in NAMES if name} | {"engine_args": {"model": NAMES[0]}, "batch_size": NAMES[1], "prompt_len": [1, {"a": NAMES[0]}]}


def summary(node, total):
    entry = {"name": node["name"], "cuda_time_us": node["time"], "pct_cuda_time": 100 * node["time"] / total if total else 0, "invocations": 1}
    return {"entry": entry, "children": [summary(child, total) for child in node["children"]]}


def model(node, total):
    entry = {"name": node["name"], "cpu_time_us": 3 if node["children"] else 0, "cuda_time_us": node["time"],
             "pct_cuda_time": 100 * node["time"] / total if total else 0, "trace": "" if node["children"] else node["name"][:1000]}
    return {"entry": entry, "children": [model(child, total) for child in node["children"]], "lamina": {"path": node["name"][:1000]}}


def write(path, phases, context=None):
    document = {"context": context or {"batch_size": 1}}
    for name, roots in phases.items():
        total = sum(root["time"] for root in roots)
        document[name] = {"metadata": {"num_running_seqs": 4}, "summary_stats": [summary(root, total) for root in roots],
                          "model_stats": [model(root, total) for root in roots]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)
