"""The page over a stand-in for the models: its routes, and all of it in a browser without the internet."""

import json
import shutil
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from served_stand_in import StandIn
from tiers import full_but, on

uvicorn = pytest.importorskip("uvicorn", reason="the server needs pip install 'keras_bert_impl[serving]'")

from keras_bert_serving.page import application as page  # noqa: E402

pytestmark = on("tensorflow")
in_full = pytest.mark.full

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HERE = "http://127.0.0.1:"
PASSAGE = "Work began in 1933, and the bridge was opened in 1937."


class Busy(Exception):
    """What the server raises when its queue is full."""

    http_status = 429


class Running:
    """The page on a port of this machine.

    Attributes:
        served: the StandIn.
        address: of the page.
    """

    def __init__(self):
        self.served = StandIn()
        config = uvicorn.Config(page.make_page(self.served), port=0, log_level="warning")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        self.address = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}/"

    def stop(self):
        self._server.should_exit = True
        self._thread.join()

    def ask(self, **asked):
        """Status and JSON of the answer to the page's script."""
        request = urllib.request.Request(f"{self.address}page/ask", json.dumps(asked).encode())
        try:
            with urllib.request.urlopen(request) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


@pytest.fixture(scope="module")
def running():
    running = Running()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def without_failure(running):
    running.served.failure = running.served.longest = None
    running.served.loading = 0
    running.served.asked.clear()


def test_an_answer_comes_with_the_same_request_to_the_rest_interface_and_tells_what_was_cut(running):
    running.served.longest = 8
    status, content = running.ask(task="classify", model="moods", fields={"text": "fine", "text_pair": ""})
    assert status == 200 and content["cut_to"] == 8
    assert content["answer"]["chosen"] == ["good"]
    assert content["request"] == {
        "path": "v1/models/moods:predict",
        "body": {"signature_name": "serving_default", "inputs": {"text": ["fine"]}},
    }


def test_a_field_that_is_wrong_is_named(running):
    status, content = running.ask(task="answer", model="passages", fields={"question": "Who?", "context": ""})
    assert (status, content["field"]) == (400, "context")
    assert not running.served.asked


def test_a_task_of_another_model_is_refused(running):
    status, content = running.ask(task="answer", model="moods", fields={"question": "Who?", "context": "I."})
    assert status == 404 and "moods" in content["error"]


def test_a_busy_server_says_so_and_an_unforeseen_failure_tells_nothing_of_other_requests(running):
    running.served.failure = Busy("The queue is full.")
    assert running.ask(task="rate", model="stars", fields={"text": "a"}) == (429, {"error": "The queue is full."})
    running.served.failure = RuntimeError("secret text")
    status, content = running.ask(task="rate", model="stars", fields={"text": "a"})
    assert status == 500 and "secret" not in content["error"]


@pytest.mark.parametrize("body", [{"task": "rate", "model": "stars", "fields": []}, [1]])
def test_a_request_of_another_form_or_size_is_refused_before_a_model_is_asked(running, body):
    for content, status in ((json.dumps(body), "400"), ("a" * (page.MOST_BYTES + 1), "413")):
        request = urllib.request.Request(f"{running.address}page/ask", content.encode())
        with pytest.raises(urllib.error.HTTPError, match=status):
            urllib.request.urlopen(request)
    assert not running.served.asked


def test_every_file_of_the_page_is_served_and_no_other(running):
    types = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml",
             "js": "text/javascript; charset=utf-8"}  # fmt: skip
    for name in [path.name for path in page.STATIC.iterdir()]:
        with urllib.request.urlopen(f"{running.address}page/{name}") as response:
            assert response.headers["content-type"] == types[name.partition(".")[2]]
            assert "default-src 'self'" in response.headers["content-security-policy"]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{running.address}page/..%5Cpanels.py")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="the page is not driven: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("the page is not driven: no Chromium is installed (apt-get install chromium)")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def tab(browser):
    """A new tab. What it asks for elsewhere than this machine, and errors of its scripts, fail the test."""
    tab = browser.new_page()
    foreign, errors = [], []
    tab.on("request", lambda request: foreign.append(request.url) if HERE not in request.url else None)
    # What the Content-Security-Policy stops is no request, but is in the console.
    tab.on("console", lambda message: foreign.append(message.text) if "Security Policy" in message.text else None)
    tab.on("pageerror", lambda error: errors.append(str(error)))
    yield tab
    tab.close()
    assert not foreign
    assert not errors


# For each task: its fields, what the answer says, and the first element in which it is shown.
ASKED = {
    "fill-mask": ({"text": "The [MASK] sat."}, "“cat”, 70 % sure", ".bars li", "cat\n70 %"),
    "classify": ({"text": "fine"}, "good, 75 % sure", ".bars li", "good\n75 %"),
    "rate": ({"text": "fine"}, "The model says 3.142.", "#summary", "The model says 3.142."),
    "next-sentence": (
        {"text": "She knocked.", "text_pair": "He came."},
        "No, it would not follow: 89 % sure",
        ".chosen",
        "It does not\n89 %",
    ),
    "answer": ({"question": "When?", "context": PASSAGE}, "1937", "mark", "1937"),
    "entities": ({"text": "Ada Lovelace left London."}, "2 names found", "mark", "Ada Lovelaceperson"),
    "compare": ({"sentences": "aaa\naab\nb"}, "Closest: sentences 1 and 2 (1.00)", "tbody td:nth-child(3)", "1.00"),
    "choose": ({"text": "So", "endings": "one\ntwo\nthree"}, "two", ".bars .chosen", "two\n70 %"),
    "attention": ({"text": "a b"}, "Choose a word to see where it looks.", ".token[aria-pressed=true]", "a"),
}


@pytest.mark.parametrize("task", full_but(ASKED, "fill-mask"))
def test_a_task_is_asked_and_answered(tab, running, task):
    fields, summary, shown_in, shown = ASKED[task]
    tab.goto(f"{running.address}#task={task}")
    for name, text in fields.items():
        tab.fill(f"#field-{name}", text)
    tab.click("#submit")
    tab.wait_for_selector("#result:not([hidden]):not(.old)")
    assert tab.inner_text("#summary") == summary
    assert tab.locator(shown_in).first.inner_text() == shown


@in_full
def test_models_that_are_still_being_loaded_are_counted(tab, running):
    for count, shown in ((1, "1 model is still"), (2, "2 models are still"), (0, "")):
        running.served.loading = count
        tab.goto(f"{running.address}?{count}")
        tab.wait_for_selector("#task:not([hidden])")
        assert tab.is_visible("#loading") == bool(count) and shown in tab.inner_text("#loading")


@in_full
def test_a_page_that_is_opened_before_any_model_is_loaded_waits_for_one(tab, running):
    running.served.loading, models = 1, running.served.models
    running.served.models = []
    try:
        tab.goto(running.address)
        tab.wait_for_function("document.getElementById('loading').textContent.includes('1 model is still')")
    finally:
        running.served.models, running.served.loading = models, 0
    tab.wait_for_selector("#task:not([hidden])")
    assert not tab.is_visible("#loading")


@in_full
def test_back_shows_what_was_asked_before(tab, running):
    tab.goto(f"{running.address}#task=rate&text=first")
    tab.wait_for_selector("#result:not([hidden])")
    tab.fill("#field-text", "second")
    tab.click("#submit")
    tab.wait_for_function("location.hash.includes('second')")
    tab.go_back()
    tab.wait_for_function("document.getElementById('field-text').value === 'first'")


@in_full
def test_an_example_is_asked_with_one_click(tab, running):
    tab.goto(f"{running.address}#task=answer")
    tab.click("text=When was the bridge opened?")
    tab.wait_for_selector("mark")
    assert running.served.asked[0][2]["question"] == ["When was the bridge opened?"]


@in_full
def test_everything_is_reached_with_the_keyboard_alone(tab, running):
    tab.goto(f"{running.address}#task=fill-mask")
    tab.wait_for_selector("#task:not([hidden])")
    reached = []
    for _ in range(40):
        tab.keyboard.press("Tab")
        reached.append(tab.evaluate("document.activeElement.innerText.trim() || document.activeElement.id"))
    for name in ("Skip to the form", "Compare sentences", "Insert [MASK]", "field-text", "Guess the word"):
        assert name in reached


@in_full
def test_an_empty_field_is_marked_and_gets_the_focus(tab, running):
    tab.goto(f"{running.address}#task=answer")
    tab.fill("#field-question", "When?")
    tab.click("#submit")
    tab.wait_for_selector("#field-context[aria-invalid]")
    assert tab.inner_text("#field-context-error") == "Write a passage first."
    assert tab.evaluate("document.activeElement.id") == "field-context"


def test_markup_in_a_text_stays_text(tab, running):
    tab.goto(f"{running.address}#task=entities")
    tab.fill("#field-text", "<img src=x onerror=alert(1)> London")
    tab.click("#submit")
    tab.wait_for_selector("mark")
    assert tab.locator("#details img").count() == 0
    assert "<img src=x" in tab.inner_text(".passage")


@in_full
def test_a_head_of_the_attention_is_chosen_and_the_address_holds_what_was_asked(tab, browser, running):
    tab.goto(f"{running.address}#task=attention")
    tab.fill("#field-text", "a & b")
    tab.keyboard.press("Control+Enter")
    tab.select_option("select >> nth=0", "1")
    tab.select_option("select >> nth=1", "2")
    tab.click(".token >> nth=3")
    assert tab.inner_text(".attention-spoken") == "“b” looks most at “a” 75 %, “[SEP]” 25 %."
    other = browser.new_page()
    other.goto(tab.url)
    other.wait_for_selector(".token[aria-pressed=true]")
    assert other.inner_text(".token[aria-pressed=true]") == "b" and other.input_value("#field-text") == "a & b"
    assert [other.input_value(f"select >> nth={place}") for place in (0, 1)] == ["1", "2"]
    other.close()


@in_full
def test_a_server_that_is_away_is_reported_and_can_be_asked_again(tab):
    server = Running()
    tab.goto(f"{server.address}#task=rate")
    tab.wait_for_selector("#field-text")
    server.stop()
    tab.fill("#field-text", "fine")
    tab.click("#submit")
    tab.wait_for_selector(".problem")
    assert "The server does not answer." in tab.inner_text("[role=alert]")
    assert tab.input_value("#field-text") == "fine"


@in_full
def test_a_text_that_was_cut_is_told_below_the_answer(tab, running):
    running.served.longest = 8
    tab.goto(f"{running.address}#task=classify&text=fine")
    tab.wait_for_selector(".notice")
    assert "read only its first 8 tokens" in tab.inner_text(".notice")
    running.served.longest = None
    tab.click("#submit")
    tab.wait_for_selector(".notice", state="detached")


@in_full
@pytest.mark.parametrize("then", ["ask again", "another task"])
def test_the_message_about_a_failure_goes_with_the_next_step(tab, running, then):
    running.served.failure = Busy("The queue is full.")
    tab.goto(f"{running.address}#task=rate&text=fine")
    tab.wait_for_selector(".problem")
    running.served.failure = None
    tab.click(".problem button" if then == "ask again" else "[data-task=compare]")
    tab.wait_for_selector(".problem", state="detached")
    spoken = "The model says 3.142." if then == "ask again" else ""
    tab.wait_for_function("said => document.getElementById('spoken').textContent === said", arg=spoken)
    assert tab.is_visible("#result") == (then == "ask again")


@in_full
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_and_no_page_is_wider_than_the_screen(browser, running, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python").Axe()
    # Without the fading in, in the middle of which axe would measure other contrasts.
    options = {"color_scheme": scheme, "reduced_motion": "reduce"}
    tab = browser.new_page(viewport={"width": width, "height": 900}, **options)
    for task, (fields, *_) in ASKED.items():
        tab.goto(f"{running.address}?{task}#" + urllib.parse.urlencode({"task": task, **fields}))
        tab.wait_for_selector("#result:not([hidden]):not(.old)")
        assert not axe.run(tab).response["violations"], task
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), task
    tab.close()
