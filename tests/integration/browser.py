"""A headless Chromium, driven over its pipe (DevTools protocol) by Python alone."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from patience import patience

PROGRAMS = ["chromium-headless-shell", "chromium"]
ANSWER_SECONDS = 30


def program():
    """Of Debian's package; None where it is not installed (./run setup --browser)."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class BrowserError(Exception):
    pass


def why_not():
    """Why there can be none here, or None."""
    if not program():
        return "no chromium-headless-shell here; ./run setup --browser fetches it"
    done = subprocess.run([program(), "--headless", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--dump-dom", "data:text/html,<p>here"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=patience(60))
    return None if "here" in done.stdout else f"{program()} shows nothing: {done.stderr.strip()[-200:]}".replace("\n", " | ")


class Browser:
    """One process with one page."""

    def __init__(self, width=1280, height=900):
        self.folder = tempfile.mkdtemp(prefix="motley-browser-")
        to_it, from_it = os.pipe(), os.pipe()
        # It loads what we serve ourselves; its own sandbox wants user namespaces, which containers and root do not have.
        command = [program(), "--headless", "--no-sandbox", "--disable-dev-shm-usage", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--hide-scrollbars",
                   f"--user-data-dir={self.folder}", f"--window-size={width},{height}", "about:blank"]
        def descriptors():
            # Which may be 3 and 4 themselves.
            read, write = os.dup(to_it[0]), os.dup(from_it[1])
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.process = subprocess.Popen(command, preexec_fn=descriptors, pass_fds=(3, 4), stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL)
        os.close(to_it[0])
        os.close(from_it[1])
        self.write, self.read = to_it[1], from_it[0]
        self.number, self.buffer, self.session = 0, b"", None
        self.errors = []   # exceptions of the page, and what its policy refused
        self.answers = {}  # by part of an address: what is answered in its server's place
        try:
            self.begin(width, height)
        except BrowserError:
            self.close()
            raise

    def begin(self, width, height):
        target = self.call("Target.createTarget", url="about:blank", width=width, height=height)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.write)
        os.close(self.read)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def send(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write, data):]
        return self.number

    def call(self, method, **parameters):
        number = self.send(method, **parameters)
        deadline = time.monotonic() + patience(ANSWER_SECONDS)
        while True:
            answer = self.receive(deadline - time.monotonic(), method)
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.note(answer)

    def receive(self, seconds, what):
        while b"\0" not in self.buffer:
            if not select.select([self.read], [], [], max(0, seconds))[0]:
                raise BrowserError(f"no answer to {what}")
            block = os.read(self.read, 1 << 16)
            if not block:
                with open(self.log.name, "rb") as file:
                    raise BrowserError(f"the browser ended at {what}: {file.read()[-500:].decode(errors='replace')}")
            self.buffer += block
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def note(self, event):
        if event.get("method") == "Runtime.exceptionThrown":
            details = event["params"]["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["source"] in ("security", "violation"):
            self.errors.append(event["params"]["entry"]["text"])

        if event.get("method") == "Fetch.requestPaused":
            request = event["params"]
            body = next((text for part, text in self.answers.items() if part in request["request"]["url"]), None)
            if body is None:
                self.send("Fetch.continueRequest", requestId=request["requestId"])
                return
            self.send("Fetch.fulfillRequest", requestId=request["requestId"], responseCode=200,
                      responseHeaders=[{"name": "Content-Type", "value": "application/json"}], body=base64.b64encode(body.encode()).decode())

    def answer(self, part, text):
        """Requests whose address has this part are answered with the text; None: by their server again."""
        self.answers.pop(part, None)
        if text is not None:
            self.answers[part] = text
        self.call("Fetch.enable" if self.answers else "Fetch.disable", **({"patterns": [{"urlPattern": f"*{p}*"} for p in self.answers]} if self.answers else {}))

    def open(self, url):
        self.call("Page.navigate", url="about:blank")   # or a new fragment alone would load nothing
        self.call("Page.navigate", url=url)

    def value(self, expression):
        """Of JavaScript in the page, also what a promise gives; of an element: true."""
        expression = f"(async () => {{ const v = await ({expression}); return v instanceof Node ? true : v; }})()"
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{expression}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    def wait(self, expression, seconds=20):
        """Until it is true; returns it. After so many seconds, longer on a busy machine, what the page shows is said."""
        deadline = time.monotonic() + patience(seconds)
        while True:
            value = self.value(expression)
            if value:
                return value
            if time.monotonic() > deadline:
                raise BrowserError(f"not within {seconds} s: {expression}; the page's errors: {self.errors}; "
                                   f"it shows: {str(self.value('document.body.innerText'))[:800]}")
            time.sleep(0.1)

    def size(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def screenshot(self, path, whole=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
