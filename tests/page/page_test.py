"""The HTML page in a headless Chromium: made from the recorded profiles of tests/data, from 50,000 rows, and from hostile names."""
import csv
import io
import json
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import browser  # pylint: disable=wrong-import-position
import pages  # pylint: disable=wrong-import-position
import traced  # pylint: disable=wrong-import-position
from traced import check  # pylint: disable=wrong-import-position

DATA = os.path.join(os.path.dirname(HERE), "data")


class Tab(browser.Browser):
    """A page made from a profile, and what one sees of it."""

    def __init__(self, suite, *first):
        if not browser.find():
            raise traced.Skip("no Chromium here (Debian package chromium)")
        super().__init__(suite.scratch)
        self.suite, self.first = suite, first

    def __enter__(self):
        try:
            self.load(*self.first)
        except BaseException:
            self.__exit__()
            raise
        return self

    def load(self, profile, *arguments, fragment=""):
        path = self.suite.folder(os.path.basename(profile) + ".html")
        self.suite.run([self.suite.lamina, "html", profile, "-o", path, "--force", *arguments])
        self.open(path, fragment)
        check(not self.eval("!current.tree"), "the page has no tree")

    def text(self, selector):
        return self.eval(f"document.querySelector({json.dumps(selector)}).textContent")

    def crumbs(self):
        return self.eval("[...document.querySelectorAll('#crumbs button')].map(each => each.textContent)")

    def rows(self):
        """[[name, cell...]] of what is in sight of the table."""
        return self.eval("[...document.querySelectorAll('#table .row')].map(row => [...row.children].map((cell, i) =>"
                         " i ? cell.textContent : cell.querySelector('.label').textContent))")

    def names(self):
        return [row[0] for row in self.rows()]

    def press(self, selector, label):
        """A click on the button of this label."""
        place = self.eval(f"(() => {{ const e = [...document.querySelectorAll({json.dumps(selector + ' button')})].find(each =>"
                          f" each.textContent.startsWith({json.dumps(label)})); e.scrollIntoView({{block: 'center'}});"
                          " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        self.mouse(*place)

    def row_of(self, name):
        return self.eval(f"(() => {{ for (let row = 0; row < current.tree.shape.count; ++row) if (full_name(current.tree, row) === {json.dumps(name)})"
                         " return row; return null; })()")

    def click_box(self, name):
        """A click on the middle of a box of the icicle."""
        x, y = self.eval(f"(() => {{ const row = {self.row_of(name)}; canvas.scrollIntoView({{block: 'center'}}); const r = canvas.getBoundingClientRect();"
                         " const box = box_of(row); return [r.x + (box.begin + box.length / 2 - window_.begin) / window_.length * r.width,"
                         " r.y + (current.tree.shape.depth[row] + 1.5) * BOX_HEIGHT - icicle.scrollTop]; })()")
        self.mouse(x, y)

    def settled(self):
        """Waits for the flight of a zoom to end."""
        self.wait("Math.abs(window_.begin - box_of(state.zoom).begin) < 1e-3 && Math.abs(window_.length - box_of(state.zoom).length) < 1e-3")

    def search(self, text):
        self.eval("search.focus(), search.select(), 0")
        self.type(text)
        self.wait(f"state.query === {json.dumps(text)}")

    def done(self):
        check(not self.problems, f"the page complains: {self.problems}")
        foreign = [url for url in self.requests if not url.startswith(("file://", "about:", "data:"))]
        check(not foreign, f"the page asks the network for {foreign}")


def data_file(name):
    return os.path.join(DATA, name)


def test_command(suite):
    """Where the page goes, and what is said when it can not be made. Needs no browser."""
    profile = suite.folder("command")
    shutil.copytree(data_file("h200-torch"), profile)
    html = [suite.lamina, "html"]
    done = suite.run(html + [profile + "/"])
    check(done.stderr == f"lamina: wrote {profile}.html\n" and os.path.getsize(profile + ".html") < 2e6, done.stderr)
    check("exists" in suite.run(html + [profile], status=2).stderr, "the page is not overwritten")
    suite.run(html + [profile, "--force"])
    page = suite.run(html + [profile, "-o", "-", "--phase", "decode_2"]).stdout
    found = json.loads(re.search(r'id="data">(.*?)</script>', page).group(1))
    check([phase["name"] for phase in found["phases"]] == ["decode_2"] and len(found["phases"][0]["views"]) == 1, "one step")
    for arguments, message in ((["--phase", "no"], "no phase 'no'"), (["--rank", "7"], "no rank 7")):
        done = suite.run(html + [profile, "-o", "-", *arguments], status=1)
        check(message in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, done.stderr)
    check("no such profile" in suite.run(html + [profile + "x"], status=1).stderr, "no profile")
    suite.run(html, status=2)


def test_every_profile(suite):
    """No profile makes the page complain, and the rows are what `lamina table` has."""
    with Tab(suite, data_file("h200-eager")) as tab:
        for name in ("h200-graph", "h200-torch", "h200-torch-graph", "h200-raw-ops", "h200-callers", "h200-python", "layerwise-sample.json"):
            tab.load(data_file(name))
            check(tab.rows(), f"{name}: no rows")
        tab.load(data_file("h200-graph"))
        check(tab.rows()[0] == ["LlamaForCausalLM", "68.166", "99.90 %", "8", "8,520.81", "0.317"], f"the first row: {tab.rows()[0]}")
        check(tab.text("#title") == "h200-graph" and tab.text("#completeness") == "✓ Complete", "the heading")
        check("4346 kernels" in tab.text("#account"), "the account")
        tab.done()


def test_zoom_and_back(suite):
    with Tab(suite, data_file("h200-graph")) as tab:
        check(tab.crumbs() == ["decode"] and tab.eval("by_id('back').disabled"), "the start")
        tab.click_box("self_attn")
        tab.settled()
        check(tab.crumbs() == ["decode", "LlamaForCausalLM", "LlamaModel", "layers.*", "self_attn"], f"after a click: {tab.crumbs()}")
        check(tab.names()[:2] == ["self_attn", "qkv_proj"], f"the table: {tab.names()}")
        tab.click_box("attn")
        tab.settled()
        tab.click("#back")
        tab.wait("document.querySelector('[aria-current]').textContent === 'self_attn'")
        tab.key("Escape")
        check(tab.crumbs()[-1] == "layers.*", f"Escape: {tab.crumbs()}")
        tab.eval("document.activeElement.blur(), 0")
        tab.key("Backspace")
        tab.wait("document.querySelector('[aria-current]').textContent === 'self_attn'")
        tab.press("#crumbs", "decode")
        check(tab.crumbs() == ["decode"], "a click on the first crumb")
        place = tab.eval("location.hash")
        tab.load(data_file("h200-graph"), fragment=place.replace("zoom=-1", f"zoom={tab.row_of('mlp')}"))
        check(tab.crumbs()[-1] == "mlp", "the address holds the place")
        tab.load(data_file("h200-graph"), fragment="#phase=77&step=-3&rank=5&mode=x&zoom=999999999&y=<b>")
        check(len(tab.crumbs()) == 1 and tab.rows(), "an address that makes no sense")
        tab.done()


def test_phases_and_steps(suite):
    with Tab(suite, data_file("h200-graph")) as tab:
        tab.press("#phases", "prefill")
        check(tab.crumbs() == ["prefill"] and tab.eval("by_id('steps').hidden"), "prefill has one step")
        tab.press("#phases", "decode")
        x, y, width = tab.eval("(() => { const r = bars.getBoundingClientRect(); return [r.x, r.y + 60, bar_width]; })()")
        tab.mouse(x + 2.5 * width, y)
        check(tab.crumbs() == ["decode_3"], f"a click on the third bar: {tab.crumbs()}")
        expected = suite.run([suite.lamina, "table", data_file("h200-graph"), "--phase", "decode_3"]).stdout.splitlines()[2].split("|")
        check(tab.rows()[0][4] == f"{float(expected[1]):,.2f}", f"{tab.rows()[0]} is not {expected}")
        tab.eval("bars.focus(), 0")
        tab.key("ArrowRight")
        check(tab.crumbs() == ["decode_4"] and tab.eval("bars.getAttribute('aria-valuenow')") == "4", "the right arrow")
        tab.key("End")
        check(tab.crumbs() == ["decode_8"], "the end key")
        tab.click("#all-steps")
        check(tab.crumbs() == ["decode"], "all steps")
        tab.press("#modes", "Call by call")
        check(tab.crumbs() == ["decode_1"] and "layers.0" in tab.eval("data.strings"), f"call by call: {tab.crumbs()}")
        check(tab.row_of("layers.31") is not None and tab.row_of("layers.*") is None, "layers by themselves")
        tab.done()


def test_paths_and_traces(suite):
    with Tab(suite, data_file("h200-torch"), "--phase", "decode_2") as tab:
        check(tab.eval("phases.length") == 1, "one phase is chosen")
        tab.press("#modes", "Call by call")
        heads = tab.eval("[...document.querySelectorAll('.head button')].map(each => each.textContent)")
        check(heads[-2:] == ["Trace", "Instance"] and heads[3].startswith("CPU time"), f"columns: {heads}")
        cells = dict(zip(heads, next(row for row in tab.rows() if row[0].startswith("Embedding("))))
        check(cells["Instance"].endswith("embed_tokens"), f"the instance: {cells}")
        check(any("embedding(" in row[-2] for row in tab.rows()), "no trace")
        tab.click_box("MistralMLP")
        check("Instance" in tab.text("#tip") and "model.layers.0.mlp" in tab.text("#tip"), f"the tip: {tab.text('#tip')}")
        tab.done()


def test_search_and_groups(suite):
    with Tab(suite, data_file("h200-graph")) as tab:
        tab.eval("document.activeElement.blur(), 0")
        tab.key("/")
        check(tab.eval("document.activeElement.id") == "search", "a slash goes to the search")
        tab.type("SplitK")
        tab.wait("state.query === 'SplitK'")
        found = [name for name in tab.names() if "splitk" in name.lower()]
        check(len(found) == 4 and tab.text("#matches").startswith("4 rows, 10.319 ms, 15.12 %"), f"{found}, {tab.text('#matches')}")
        check(set(tab.names()) - set(found) == {"LlamaForCausalLM", "LlamaModel", "layers.*", "self_attn", "o_proj", "mlp", "down_proj"}, "what is around")
        check(tab.eval("document.querySelectorAll('#table mark').length") == 4, "the matches are set off")
        tab.key("Escape")
        check(tab.eval("search.value") == "" and len(tab.names()) > 20, "Escape ends the search")
        tab.search("no such thing")
        check(not tab.rows() and tab.text("#matches").startswith("0 rows"), "nothing is found")
        tab.key("Escape")
        tab.press("#tabs", "Groups")
        groups = tab.names()
        tab.press("#groups", groups[-1])
        check(tab.names() == groups[-1:], "one group")
        tab.press("#groups", groups[-1])
        check(tab.names() == groups, "all groups again")
        tab.press("#tabs", "Kernels")
        kernels = tab.rows()
        times = [float(row[1]) for row in kernels]
        check(times == sorted(times, reverse=True) and abs(sum(times) - 68.237) < 0.01, f"kernels add up: {sum(times)}")
        tab.done()


def test_sorting(suite):
    with Tab(suite, data_file("h200-graph")) as tab:
        by_launch = tab.names()
        children = ["input_layernorm", "self_attn", "post_attention_layernorm", "mlp"]
        check([name for name in by_launch if name in children] == children, f"in order of launch: {by_launch}")
        tab.press(".head", "GPU time")
        check([name for name in tab.names() if name in children] == ["self_attn", "mlp", "post_attention_layernorm", "input_layernorm"], "the most first")
        check(tab.eval("document.querySelector('[data-column=time]').getAttribute('aria-sort')") == "descending", "aria-sort")
        tab.press(".head", "GPU time")
        check([name for name in tab.names() if name in children] == ["input_layernorm", "post_attention_layernorm", "mlp", "self_attn"], "the least first")
        tab.press(".head", "GPU time")
        check(tab.names() == by_launch, "as before")
        tab.press(".head", "Name")
        check([name for name in tab.names() if name in children] == sorted(children), "by name")
        tab.done()


def test_keyboard(suite):
    with Tab(suite, data_file("h200-graph")) as tab:
        tab.eval("table.focus(), 0")
        active = "document.getElementById(table.getAttribute('aria-activedescendant')).querySelector('.label').textContent"
        for _ in range(4):
            tab.key("ArrowDown")
        check(tab.eval(active) == "layers.*", f"four down: {tab.eval(active)}")
        check(not tab.eval("tip.hidden") and "98.90 %" in tab.text("#tip"), "the row in full")
        tab.key("ArrowLeft")
        check("self_attn" not in tab.names(), "closed")
        tab.key("ArrowRight")
        check("self_attn" in tab.names(), "open again")
        tab.key("Enter")
        check(tab.crumbs()[-1] == "layers.*", "Enter zooms in")
        tab.key("Escape")
        check(tab.crumbs()[-1] == "LlamaModel", "Escape zooms out")
        tab.key("End")
        check(tab.eval("active") == tab.eval("rows.length") - 1, "to the end")
        tab.eval("canvas.focus(), focus_row = NONE, 0")
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft"):
            tab.key(key)
        check("self_attn" in tab.text("#spoken") and "60.83 %" in tab.text("#spoken"), f"in the icicle: {tab.text('#spoken')}")
        tab.key("Enter")
        check(tab.crumbs()[-1] == "self_attn", "Enter zooms in")
        reached = set()
        tab.eval("document.activeElement.blur(), 0")
        for _ in range(40):
            tab.key("Tab", "\t")
            reached.add(tab.eval("document.activeElement.id || document.activeElement.closest('[id]')?.id"))
            visible = tab.eval("document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== 'none'")
            check(visible, f"the focus is not seen: {tab.eval('document.activeElement.outerHTML.slice(0, 200)')}")
        missing = {"theme", "phases", "modes", "bars", "search", "groups", "crumbs", "icicle-canvas", "tabs", "copy", "table"} - reached
        check(not missing, f"Tab does not reach {missing}")
        tab.done()


def test_theme(suite):
    with Tab(suite, data_file("h200-graph")) as tab:
        ground = "getComputedStyle(document.body).backgroundColor"
        light = tab.eval(ground)
        tab.dark(True)
        tab.wait(f"{ground} !== '{light}'")
        dark = tab.eval(ground)
        tab.click("#theme")
        check("Light" in tab.text("#theme") and tab.eval(ground) == light, "light on a dark system")
        tab.click("#theme")
        tab.dark(False)
        check("Dark" in tab.text("#theme") and tab.eval(ground) == dark, "dark on a light system")
        tab.load(data_file("h200-graph"))
        check(tab.eval(ground) == dark, "the choice is kept")
        tab.done()


def test_csv(suite):
    profile = suite.folder("csv.json")
    pages.write(profile, {"decode": [pages.layer("a,b", [pages.kernel('say "x"\r\ny', 2.5), pages.kernel("plain", 7.5)])]})
    with Tab(suite, profile) as tab:
        text = tab.eval('csv_lines().join("")')
        expected = ('depth,name,cuda_time_us,pct_cuda_time,invocations,cuda_time_us_each\r\n0,"a,b",10,100.0000,1,10\r\n'
                    '1,"say ""x""\r\ny",2.5,25.0000,1,2.5\r\n1,plain,7.5,75.0000,1,7.5\r\n')
        check(text == expected, text)
        tab.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        tab.click("#copy")
        tab.wait("by_id('copied').textContent !== ''")
        check(tab.text("#copied") == "3 rows copied", tab.text("#copied"))
        check(tab.eval("navigator.clipboard.readText()").replace("\r\n", "\n") == expected.replace("\r\n", "\n"), "the clipboard")
        tab.load(data_file("h200-graph"))
        tab.click("#close-all")
        table = list(csv.DictReader(io.StringIO(tab.eval('csv_lines().join("")'))))
        check(len(table) == 35 and table[0]["cuda_time_us"].startswith("68166.4"), "closed rows are copied too")
        tab.search("splitK")
        check(len(list(csv.reader(io.StringIO(tab.eval('csv_lines().join("")'))))) == 12, "what the search leaves")
        tab.done()


def test_ranks(suite):
    """Two processes of one run: all of it, and each by itself."""
    profile = suite.folder("ranks")
    for rank in ("0", "1"):
        suite.record("ranks", [os.path.join(suite.build, "sim", "sim_eager")], LD_LIBRARY_PATH=os.path.join(suite.build, "sim"), RANK=rank)
    with Tab(suite, profile) as tab:
        ranks = tab.eval("[...document.querySelectorAll('#rank option')].map(each => each.textContent)")
        check(ranks == ["all", "0", "1"], f"ranks: {ranks}")
        totals = tab.eval("[0, 1, 2].map(rank => current.phase.find_view(rank, 0).total)")
        check(totals[0] == totals[1] + totals[2] and totals[2] > 0, f"the ranks add up: {totals}")
        tab.eval("by_id('rank').value = '2', by_id('rank').onchange(), 0")
        check("rank 1" in tab.crumbs()[0] and tab.eval("current.tree.total") == totals[2], f"rank 1: {tab.crumbs()}")
        tab.done()


def test_gpu_time(suite):
    """Busy, idle and communication of steps, and the idle time of layers, where the data has them."""
    with Tab(suite, data_file("layerwise-sample.json")) as tab:
        check("idle" not in tab.text("#step-text") and "Idle" not in tab.text(".head"), "nothing is known")
        tab.load(data_file("h200-graph"))
        tab.eval("choose({step: 2}), 0")
        table = suite.run([suite.lamina, "table", data_file("h200-graph"), "--phase", "decode_2", "--idle"]).stdout.splitlines()
        check(tab.rows()[0][-1] == table[2].split("|")[-2].strip(), f"{tab.rows()[0]} is not {table[2]}")
        check("idle 39.59 µs" in tab.text("#step-text") and tab.text("#step-legend") == "busyidle", tab.text("#step-text"))
        tab.eval("choose({step: 0}), 0")
        tab.eval("phases.forEach(phase => { phase.trees.clear(); phase.json.views.forEach(view => {"
                 " view.gpu = [view.total * 2, view.total, view.total / 2, view.total / 4]; view.idle = view.time.map(ns => ns / 10); }); }), refresh({}), 0")
        check("idle 68.237 ms" in tab.text("#step-text") and "exposed 17.059 ms" in tab.text("#step-text"), tab.text("#step-text"))
        check("(50.0 %)" in tab.text("#step-text"), tab.text("#step-text"))
        check(tab.rows()[0][-1] == "6.817" and "exposed communication" in tab.text("#step-legend"), f"the idle column: {tab.rows()[0]}")
        check(tab.eval("csv_lines()[1]").split(",")[-1].startswith("6816.64"), tab.eval("csv_lines()[1]"))
        tab.done()


def test_hostile_names(suite):
    """Names that are markup, that break lines, that are huge: all of them are text."""
    profile = suite.folder("hostile.json")
    pages.write(profile, pages.HOSTILE, context=pages.HOSTILE_CONTEXT)
    with Tab(suite, profile) as tab:
        count = tab.eval("phases.length")
        check(count == len(pages.HOSTILE), f"{count} phases")
        for phase in range(count):
            for mode in ("summary", "model"):
                tab.eval(f"choose({{phase: {phase}, mode: '{mode}'}}), open_all(true), 0")
                for view in ("kernels", "groups", "layers"):
                    tab.eval(f"choose({{tab: '{view}'}}), csv_lines(), 0")
                tab.eval("rows.slice(0, 25).forEach((row, i) => show_table_tip(i, 9, 9)), 0")
        check(tab.eval("window.harmed") is None, "a name was run as a script")
        check(tab.eval("document.querySelectorAll('img, b.evil, body script, #title *').length") == tab.eval("document.querySelectorAll('body > script').length"),
              "a name became markup")
        check("</script>" in tab.eval("data.strings.join()"), "names are as they were")
        tab.done()


def test_degenerate(suite):
    """Nothing to show is shown as nothing."""
    cases = {
        "no phases": {},
        "empty phases": {"prefill": [], "decode_1": [], "decode_2": []},
        "no time": {"decode": [pages.layer("m", [pages.kernel("k", 0), pages.kernel("l", 0)])]},
        "prefill only": {"prefill": [pages.layer("m", [pages.kernel("k", 1)])]},
        "deep": {"decode": [pages.deep(400)]},
        "children longer than the parent": {"decode": [dict(pages.layer("m", [pages.kernel("k", 9), pages.kernel("l", 9)]), time=2)]},
        "many steps": {f"decode_{step}": [pages.kernel("k", step)] for step in range(1, 1500)},
    }
    with Tab(suite, data_file("h200-torch")) as tab:
        for name, phases in cases.items():
            profile = suite.folder(name.replace(" ", "-") + ".json")
            pages.write(profile, phases)
            tab.load(profile)
            shown = tab.eval("document.body.innerText")
            check("NaN" not in shown and "undefined" not in shown and "Infinity" not in shown, f"{name}: {shown}")
            tab.eval("canvas.focus(), 0")
            for key in ("ArrowDown", "ArrowRight", "ArrowUp", "Enter", "Escape"):
                tab.key(key)
            check(not tab.problems, f"{name}: {tab.problems}")
        tab.load(suite.folder("no-time.json"))
        check(len(tab.rows()) == 3 and "No GPU time" in tab.text("#notes"), "rows without time")
        tab.load(suite.folder("children-longer-than-the-parent.json"))
        inside = ("[1, 2].every(row => current.tree.width[row] > 0 && current.tree.begin[row] + current.tree.width[row] <="
                  " current.tree.begin[0] + current.tree.width[0] + 1e-6)")
        check(tab.eval(inside), "boxes leave the one they are in")
        tab.load(suite.folder("no-phases.json"))
        check("no phase" in tab.text("#notes"), tab.text("#notes"))
        tab.done()


def test_large(suite):
    """50,000 rows: only what is in sight is on the page. Tells how long things take; no time is a failure."""
    profile = suite.folder("large.json")
    pages.write(profile, {"decode": [pages.large(50000)]})
    with Tab(suite, profile) as tab:
        check(tab.eval("current.tree.shape.count") >= 50000, "the rows")
        tab.click("#open-all")
        check(tab.eval("rows.length") >= 50000 and tab.eval("document.querySelectorAll('#table .row').length") < 100, "rows on the page")
        tab.eval("table.scrollTop = 26 * 30000, 0")
        tab.wait("document.getElementById('row-30010')")
        size = os.path.getsize(suite.folder("large.json.html"))
        took = "(() => {{ const begin = performance.now(); {}; return performance.now() - begin; }})()"
        heaviest = "(() => { for (let row = 1; ; ++row) if (current.tree.shape.depth[row] === 1) return row; })()"
        times = {
            "zoom in": tab.eval(took.format(f"zoom_to({heaviest})")), "zoom out": tab.eval(took.format("zoom_to(NONE)")),
            "draw the icicle": tab.eval(took.format("draw_icicle()")), "search": tab.eval(took.format("choose({query: 'gemm_7'})")),
            "end of search": tab.eval(took.format("choose({query: ''})")), "sort": tab.eval(took.format("choose({sort: {column: 'time', down: true}})")),
            "kernels": tab.eval(took.format("choose({tab: 'kernels'})")),
        }
        print(f"    page of {size / 1e6:.1f} MB; " + ", ".join(f"{what} {ms:.0f} ms" for what, ms in times.items()))
        tab.done()


if __name__ == "__main__":
    sys.exit(traced.main(globals()))
