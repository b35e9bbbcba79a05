"""Figures of `lamina plot` and `lamina diff --plot` from the recorded profiles of tests/data: the words of the PDF and the bars of the SVG against
the files beside this one, and PNG, JPEG and the rendered PDF against the bars of the SVG.

Boxes are compared by their share of the bar and their colour, so that fonts don't matter. `plot_test.py --build DIR
--update` writes the files anew: look at the figures, and at what git says changed, before you commit it.
"""
import collections
import difflib
import os
import re
import shutil
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import traced  # pylint: disable=wrong-import-position
from traced import check  # pylint: disable=wrong-import-position

DATA = os.path.join(os.path.dirname(HERE), "data")
UPDATE = "--update" in sys.argv
PIXELS = 2  # a point, in PNG and JPEG
# Expected file: arguments of lamina plot, in the folder of the data.
FIGURES = {
    "plot.eager.module": ["h200-eager"],
    "plot.eager.kernel": ["h200-eager", "--level", "kernel", "--top-k", "6", "--phase", "decode"],
    "plot.graph.module": ["h200-graph", "--fold", "mlp", "--step-interval", "3"],
    "plot.sample": ["layerwise-sample.json", "--ignore-sampler", "--plot-metric", "pct_cuda_time"],
}

# Of lamina diff.
CHANGES = {
    "plot.diff.graph": ["h200-eager", "h200-graph"],
    "plot.diff.torch": ["h200-torch", "h200-torch-graph"],
    "plot.diff.changed": ["diff-before.json", "diff-after.json"],
    "plot.diff.apples": ["h200-torch", "h200-eager", "--phase", "prefill"],
    "plot.diff.one": ["h200-eager", "h200-graph", "--phase", "startup"],
}


def lamina(suite, arguments, status=0, **variables):
    command = ["bash", "-c", 'cd "$1" && shift && exec "$@"', "bash", DATA, suite.lamina] + arguments
    return suite.run(command, dict(suite.clean, **variables), status)


def plot(suite, arguments, name, status=0, **variables):
    path = suite.folder(name)
    return path, lamina(suite, ["plot"] + arguments + ["-o", path], status, **variables).stderr


def plot_change(suite, arguments, name, status=0, **variables):
    path = suite.folder(name)
    return path, lamina(suite, ["diff"] + arguments + ["--plot", path], status, **variables)


def compare(name, actual, near=lambda expected, found: expected == found):
    """Lines that are `near` count as equal."""
    path = os.path.join(HERE, name)
    if UPDATE:
        with open(path, "w", encoding="utf-8") as file:
            file.write(actual)
    with open(path, encoding="utf-8") as file:
        expected = file.read()
    lines = [expected.splitlines(True), actual.splitlines(True)]
    if len(lines[0]) == len(lines[1]):
        lines[1] = [old if near(old, new) else new for old, new in zip(*lines)]
    difference = "".join(difflib.unified_diff(*lines, name, "now"))
    check(not difference, difference)


def test_words(suite):
    for draw, figures in ((plot, FIGURES), (plot_change, CHANGES)):
        for name, arguments in figures.items():
            path, _ = draw(suite, arguments, name + ".pdf")
            words = suite.run(["pdftotext", "-raw", path, "-"]).stdout.split()
            compare(name + ".words.txt", "\n".join(words) + "\n")


Box = collections.namedtuple("Box", "x y width height colour")


def boxes(path):
    """The filled rectangles of an SVG by cairo, in points."""
    with open(path, encoding="utf-8") as file:
        svg = file.read()
    number = r"(-?[\d.]+)"
    corners = " ".join(f"[ML] {number} {number}" for _ in range(4)) + " Z"
    for element in re.findall(r"<path [^>]*>", svg):
        colour = re.search(r'fill(?::|=")rgb\(([\d.]+)%, ?([\d.]+)%, ?([\d.]+)%\)', element)
        shape = re.search(f'd="{corners}', element)
        if colour and shape:
            points = [float(value) for value in shape.groups()]
            xs, ys = points[0::2], points[1::2]
            rgb = tuple(round(float(value) * 2.55) for value in colour.groups())
            yield Box(min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys), rgb)


def bars(path):
    """Lists of the boxes of each bar, the lowest first: these are as wide as most boxes are, and on one line."""
    found = list(boxes(path))
    widths = collections.Counter(round(box.width, 1) for box in found if round(box.width, 1) != 13)
    usual = widths.most_common(1)[0][0]
    groups = collections.defaultdict(list)
    for box in found:
        if round(box.width, 1) == usual:
            groups[round(box.x, 1)].append(box)
    for group in groups.values():
        start = 0
        for i in range(1, len(group) + 1):
            if i == len(group) or group[i].y > group[i - 1].y:
                yield group[start:i]
                start = i


def near_bars(expected, found):
    """The same colours, with shares that differ by 2 % of the bar at most: fonts decide about the last pixel."""
    expected, found = ([part.split(":") for part in line.split()] for line in (expected, found))
    return len(expected) == len(found) and all(a[0] == b[0] and abs(int(a[1]) - int(b[1])) <= 2 for a, b in zip(expected, found))


def test_bars(suite):
    for name, arguments in FIGURES.items():
        path, _ = plot(suite, arguments, name + ".svg")
        lines = []
        for bar in bars(path):
            height = bar[0].y + bar[0].height - bar[-1].y
            lines.append(" ".join("%02x%02x%02x:%.0f" % (*box.colour, 100 * box.height / height) for box in bar))
        compare(name + ".bars.txt", "\n".join(lines) + "\n", near_bars)


SLOWER, FASTER = (0xd5, 0x5e, 0), (0, 0x72, 0xb2)
PALE_SLOWER, PALE_FASTER = (0xec, 0xb8, 0x8c), (0x8c, 0xc1, 0xde)


def change_bars(path):
    """Lists of the signed bars of each panel, in their order. The legend's boxes stand below all of these."""
    found = [box for box in boxes(path) if box.colour in (SLOWER, FASTER, PALE_SLOWER, PALE_FASTER)]
    legend = max(box.y for box in found)
    panels = []
    for box in found:
        if box.y == legend:
            continue
        if not panels or box.y < panels[-1][-1].y:
            panels.append([])
        panels[-1].append(box)
    return panels


def test_changes(suite):
    """The colour of each bar, on which side of zero it is, and its length as a share of the panel's longest."""
    for name, arguments in CHANGES.items():
        path, _ = plot_change(suite, arguments, name + ".svg")
        lines = []
        for panel in change_bars(path):
            longest = max(panel, key=lambda box: box.width)
            zero = longest.x if longest.colour in (SLOWER, PALE_SLOWER) else longest.x + longest.width
            sides = ["+" if abs(box.x - zero) < 0.5 else "-" if abs(box.x + box.width - zero) < 0.5 else "?" for box in panel]
            for box, side in zip(panel, sides):
                check(box.width < 0.5 or (side == "+") == (box.colour in (SLOWER, PALE_SLOWER)), f"{name}: {side} {box}")
            lines.append(" ".join("%02x%02x%02x:%.0f" % (*box.colour, 100 * box.width / longest.width) for box in panel))
        compare(name + ".bars.txt", "\n".join(lines) + "\n", near_bars)


def test_change_pictures(suite):
    """PNG and the rendered PDF have the bars of the SVG."""
    arguments = CHANGES["plot.diff.changed"]
    svg, _ = plot_change(suite, arguments, "change.svg")
    png, _ = plot_change(suite, arguments, "change.png")
    pdf, _ = plot_change(suite, arguments, "change.pdf")
    suite.run(["pdftoppm", "-r", "144", pdf, suite.folder("change")])
    for what, rows in (("PNG", png_rows(png)), ("PDF", ppm_rows(suite.folder("change-1.ppm")))):
        checked = 0
        for box in sum(change_bars(svg), []):
            if box.width < 3:
                continue
            x, y = int((box.x + box.width / 2) * 2), int((box.y + 3) * 2)  # above the error bar
            pixel = tuple(rows[y][x * 3:x * 3 + 3])
            check(all(abs(a - b) <= 12 for a, b in zip(pixel, box.colour)), f"{what}: {pixel} at {box}")
            checked += 1
        check(checked >= 8, f"{what}: {checked} bars seen")
    jpeg, _ = plot_change(suite, arguments, "change.jpg")
    with open(jpeg, "rb") as file:
        check(file.read(3) == b"\xff\xd8\xff", "no JPEG")


def test_change_beside_text(suite):
    """What is printed is the same as without a figure."""
    arguments = CHANGES["plot.diff.changed"]
    for form in ([], ["--format", "json"]):
        path, done = plot_change(suite, arguments + form, f"beside{len(form)}.pdf")
        check(done.stdout == lamina(suite, ["diff"] + arguments + form).stdout, f"{form}: the text is another")
        check(done.stderr == f"lamina: wrote {path}\n", done.stderr)
    text = suite.folder("beside.txt")
    path, done = plot_change(suite, arguments + ["-o", text], "beside-file.pdf")
    check(done.stdout == "" and done.stderr == f"lamina: wrote {text}\nlamina: wrote {path}\n", done.stderr)
    _, done = plot_change(suite, arguments + ["--fail-over-layer", "20%"], "beside-limit.pdf", 1)
    check("slower than" in done.stderr and "wrote" in done.stderr, done.stderr)


def test_change_refusals(suite):
    """One line each, and nothing printed or written."""
    arguments = CHANGES["plot.diff.changed"]
    path, _ = plot_change(suite, arguments, "change-refused.pdf")
    before = os.path.getsize(path)
    for more, name, status, expected in (
            (arguments, "change-refused.pdf", 2, "exists: name another file, or overwrite it with --force"),
            (arguments, "change.gif", 2, "a figure is .pdf, .svg, .png, .jpg or .jpeg"),
            (arguments + ["-o", suite.folder("change.txt")], "nowhere/change.pdf", 1, "cannot write"),
            (["h200-callers", "layerwise-sample.json"], "common.pdf", 1, "nothing to compare")):
        path, done = plot_change(suite, more, name, status)
        check(expected in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, f"{more}: {done.stderr}")
        check(name == "change-refused.pdf" or not os.path.exists(path), f"{path} was written")
    check(not os.path.exists(suite.folder("change.txt")), "half of the files were written")
    path, _ = plot_change(suite, CHANGES["plot.diff.one"] + ["--force"], "change-refused.pdf")
    check(os.path.getsize(path) != before, "not replaced")


def png_rows(path):
    """The rows of an RGB PNG as bytes."""
    with open(path, "rb") as file:
        data = file.read()
    check(data.startswith(b"\x89PNG\r\n\x1a\n"), f"{path} is no PNG")
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colours = struct.unpack(">IIBB", data[at + 8:at + 18])
            check((depth, colours) == (8, 2), "PNG of another kind")
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    raw, stride, rows = zlib.decompress(packed), width * 3, []
    before = bytes(stride)
    for y in range(height):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        unfilter(kind, row, before)
        rows.append(before := bytes(row))
    return rows


def unfilter(kind, row, before):
    """Undoes the filter of one row of 3 bytes a pixel, in place."""
    for i in range(len(row) if kind else 0):
        left, up, corner = (row[i - 3], before[i], before[i - 3]) if i >= 3 else (0, before[i], 0)
        if kind == 4:
            guess = left + up - corner
            value = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
        else:
            value = (0, left, up, (left + up) // 2)[kind]
        row[i] = (row[i] + value) & 255


def ppm_rows(path):
    with open(path, "rb") as file:
        data = file.read()
    head = re.match(rb"P6\s(\d+)\s(\d+)\s255\s", data)
    width, height = (int(value) for value in head.groups())
    return [data[head.end() + y * width * 3:head.end() + (y + 1) * width * 3] for y in range(height)]


def check_pixels(rows, scale, svg, what):
    """The left edge of every high enough box has its colour: texts are in the middle."""
    checked = 0
    for bar in bars(svg):
        for box in bar:
            if box.height < 6:
                continue
            x, y = int((box.x + 2.5) * scale), int((box.y + box.height / 2) * scale)
            pixel = tuple(rows[y][x * 3:x * 3 + 3])
            near = all(abs(a - b) <= 12 for a, b in zip(pixel, box.colour))
            striped = all(a >= b - 12 for a, b in zip(pixel, box.colour))  # white over the colour
            check(near or striped, f"{what}: {pixel} at {box}")
            checked += near
    check(checked > 20, f"{what}: {checked} boxes seen")


def test_pictures(suite):
    svg, _ = plot(suite, FIGURES["plot.eager.module"], "picture.svg")
    png, _ = plot(suite, FIGURES["plot.eager.module"], "picture.png")
    check_pixels(png_rows(png), PIXELS, svg, "PNG")
    pdf, _ = plot(suite, FIGURES["plot.eager.module"], "picture.pdf")
    suite.run(["pdftoppm", "-r", "144", pdf, suite.folder("picture")])
    check_pixels(ppm_rows(suite.folder("picture-1.ppm")), 2, svg, "PDF")
    for ending in ("jpg", "jpeg"):
        jpeg, _ = plot(suite, FIGURES["plot.eager.module"], "picture." + ending)
        with open(jpeg, "rb") as file:
            data = file.read()
        frame = data.find(b"\xff\xc0")
        check(data.startswith(b"\xff\xd8\xff") and data.endswith(b"\xff\xd9"), f"{jpeg} is no JPEG")
        height, width = struct.unpack(">HH", data[frame + 5:frame + 9])
        check((len(png_rows(png)), 1920) == (height, width), f"JPEG of {width} x {height}")


def test_every_profile(suite):
    """Both levels of each; each has text that can be selected, in real fonts."""
    for profile in sorted(os.listdir(DATA)):
        if not profile.startswith("h200-"):
            continue
        for level in ("module", "kernel"):
            path, _ = plot(suite, [profile, "--level", level], f"{profile}.{level}.pdf")
            text = suite.run(["pdftotext", path, "-"]).stdout
            check(f"GPU time by {level}" in text and "NVIDIA H200" in text and "GPU time (ms)" in text, f"{profile}: {text}")


def test_without_fonts(suite):
    config = suite.folder("no-fonts.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write('<?xml version="1.0"?><fontconfig></fontconfig>')
    path, messages = plot(suite, FIGURES["plot.sample"], "no-fonts.pdf", FONTCONFIG_FILE=config)
    check("no fonts are installed" in messages, messages)
    check(os.path.getsize(path) > 1000, "an empty figure")
    _, messages = plot(suite, FIGURES["plot.sample"], "fonts.pdf")
    check("fonts" not in messages.replace("fonts.pdf", ""), messages)


def test_change_without_fonts(suite):
    config = suite.folder("no-fonts-change.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write('<?xml version="1.0"?><fontconfig></fontconfig>')
    _, done = plot_change(suite, CHANGES["plot.diff.one"], "no-fonts-change.pdf", FONTCONFIG_FILE=config)
    check("no fonts are installed" in done.stderr, done.stderr)


def test_refusals(suite):
    path, _ = plot(suite, ["layerwise-sample.json"], "refused.pdf")
    for arguments, name, status, expected in (
            (["layerwise-sample.json"], "refused.pdf", 2, "exists"),
            (["layerwise-sample.json"], "figure.gif", 2, ".pdf, .svg, .png, .jpg or .jpeg"),
            (["layerwise-sample.json", "--phase", "nothing"], "other.pdf", 1, "no phase 'nothing'"),
            (["layerwise-sample.json", "--top-k", "0"], "other.pdf", 2, "--top-k"),
            (["layerwise-sample.json", "--level", "op"], "other.pdf", 2, "--level"),
            (["missing.json"], "other.pdf", 1, "no such profile")):
        _, messages = plot(suite, arguments, name, status)
        check(expected in messages and messages.count("\n") == 1, f"{arguments}: {messages}")
    before = os.path.getsize(path)
    plot(suite, ["layerwise-sample.json", "--force", "--level", "kernel"], "refused.pdf")
    check(os.path.getsize(path) != before, "not replaced")


def test_default_name(suite):
    profile = suite.folder("copy")
    shutil.copytree(os.path.join(DATA, "h200-callers"), profile)
    done = suite.run([suite.lamina, "plot", profile + "/"], status=None)
    check(done.returncode == 0 and os.path.exists(profile + ".pdf"), done.stderr)


sys.argv = [argument for argument in sys.argv if argument != "--update"]
sys.exit(traced.main(globals()))
