"""A headless Chromium, by the Chrome DevTools protocol over a pipe: messages are JSON with a zero byte behind each.

https://chromedevtools.github.io/devtools-protocol/
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Backspace": (8, ""), "Tab": (9, ""), "Home": (36, ""), "End": (35, ""), "ArrowLeft": (37, ""),
        "ArrowUp": (38, ""), "ArrowRight": (39, ""), "ArrowDown": (40, ""), "PageUp": (33, ""), "PageDown": (34, "")}


def find():
    """The browser's command, or None."""
    return next(filter(None, map(shutil.which, COMMANDS)), None)


class Browser:
    """One tab. `problems` holds what the page wrote to the console and what it threw."""

    def __init__(self, scratch, width=1200, height=900):
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()
        arguments = [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                     "--remote-debugging-pipe", f"--user-data-dir={tempfile.mkdtemp(prefix='browser-', dir=scratch)}", f"--window-size={width},{height}"]
        # The browser reads from descriptor 3 and writes to 4. The later pipe has the higher numbers: none is taken before its turn.
        wiring = f'exec 3<&{to_read} 4>&{to_write}; exec "$@"'
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(["bash", "-c", wiring, "bash"] + arguments, pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.received, self.number, self.session = b"", 0, None
        self.problems, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        os.close(self.to_browser)
        os.close(self.from_browser)

    # ---- the protocol

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive(60)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def receive(self, seconds):
        deadline = time.time() + seconds
        while b"\0" not in self.received:
            if not select.select([self.from_browser], [], [], max(0, deadline - time.time()))[0]:
                raise AssertionError(f"the browser did not answer in {seconds} s")
            more = os.read(self.from_browser, 1 << 20)
            if not more:
                raise AssertionError("the browser ended")
            self.received += more
        message, self.received = self.received.split(b"\0", 1)
        message = json.loads(message)
        self.note(message.get("method"), message.get("params", {}))
        return message

    def note(self, event, what):
        if event == "Runtime.exceptionThrown":
            self.problems.append(what["exceptionDetails"].get("exception", {}).get("description") or what["exceptionDetails"]["text"])
        elif event == "Runtime.consoleAPICalled":
            self.problems.append(f"console.{what['type']}: {[each.get('value') for each in what['args']]}")
        elif event == "Log.entryAdded":
            self.problems.append(f"{what['entry']['level']}: {what['entry']['text']}")
        elif event == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
        elif event == "Page.javascriptDialogOpening":
            self.problems.append(f"dialog: {what['message']}")

    # ---- what tests do

    def open(self, path, fragment=""):
        """Loads the page anew and waits until it stands."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=f"file://{path}{fragment}")
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def eval(self, expression):
        """The value of a JavaScript expression; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def wait(self, expression, seconds=30):
        deadline = time.time() + seconds
        while not self.eval(f"Boolean({expression})"):
            if time.time() > deadline:
                raise AssertionError(f"not within {seconds} s: {expression}")
            time.sleep(0.02)

    def key(self, name, text=None):
        code, typed = KEYS.get(name, (0, name))
        event = {"key": name, "windowsVirtualKeyCode": code, "text": text or typed}
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, windowsVirtualKeyCode=code)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def mouse(self, x, y, clicks=1):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for count in range(1, clicks + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

    def click(self, selector):
        """A real click, in the middle of the element."""
        x, y = self.eval(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
                         " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        self.mouse(x, y)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def shot(self, path, whole=False):
        clip = {}
        if whole:
            height = self.eval("document.documentElement.scrollHeight")
            width = self.eval("innerWidth")
            clip = {"clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}, "captureBeyondViewport": True}
        image = self.call("Page.captureScreenshot", format="png", **clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(image))
