// The page: which task is shown, its form, asking the server. The state is in the address, after the #.

import { ANSWERS } from "./answers.js";
import { make } from "./elements.js";
import { TASKS } from "./tasks.js";

const byId = (id) => document.getElementById(id);
const written = {}; // of each task, what its fields hold
// `view` is what was chosen in an answer, such as a layer of the attention: numbers by name.
const page = { models: [], task: null, model: null, view: {}, asked: 0, started: false };
const VIEW = ["layer", "head", "token"];

async function start() {
  byId("problem").replaceChildren();
  byId("loading").hidden = false;
  let loading = 0;
  try {
    ({ models: page.models, loading } = await fetched("page/models"));
  } catch (error) {
    showProblem(error, start);
    return;
  } finally {
    byId("loading").hidden = !loading;
  }
  const still = loading === 1 ? "1 model is" : `${loading} models are`;
  byId("loading").textContent = `${still} still being loaded: reload the page to see ${loading === 1 ? "it" : "them"}.`;
  const tasks = Object.keys(TASKS).filter((task) => modelsFor(task).length);
  if (!tasks.length && loading) {
    setTimeout(start, 2000);
    return;
  }
  if (!tasks.length) {
    showProblem(new Error(
      page.models.length
        ? `This page has no form for what is served: ${page.models.map((model) => model.name).join(", ")}. Ask by REST.`
        : "No model is served yet. Start the server with: keras-bert serve --model NAME=DIRECTORY",
    ), start);
    return;
  }
  byId("tasks").replaceChildren(
    ...tasks.map((task) => make("li", {}, make("a", { href: `./#task=${task}`, "data-task": task }, TASKS[task].title))),
  );
  byId("task").hidden = false;
  followAddress();
}

function modelsFor(task) {
  return page.models.filter((model) => model.tasks.includes(task));
}

function followAddress() {
  const state = new URLSearchParams(location.hash.slice(1));
  const known = modelsFor(state.get("task")).length > 0;
  if (!known && page.task) return; // the link that skips to the form
  const task = known ? state.get("task") : byId("tasks").querySelector("a").dataset.task;
  const models = modelsFor(task);
  const values = Object.fromEntries(TASKS[task].fields.map(({ name }) => [name, state.get(name) ?? ""]));
  const isAsked = TASKS[task].fields.every(({ name, optional }) => optional || values[name]);
  page.model = (models.find((model) => model.name === state.get("model")) ?? models[0]).name;
  page.view = Object.fromEntries(VIEW.filter((name) => state.has(name)).map((name) => [name, Number(state.get(name))]));
  if (isAsked) written[task] = values;
  showTask(task);
  if (isAsked) ask();
  else if (page.started) byId("title").focus();
  page.started = true;
}

function showTask(name) {
  const task = TASKS[name];
  page.task = name;
  page.asked += 1; // an answer to another task that is still under way is not shown
  document.title = `${task.title} – Ask the models`;
  byId("title").textContent = task.title;
  byId("hint").textContent = task.hint;
  setBusy(false);
  for (const link of byId("tasks").querySelectorAll("a")) {
    if (link.dataset.task === name) {
      link.setAttribute("aria-current", "page");
      link.parentElement.parentElement.parentElement.scrollLeft = link.offsetLeft - 16; // on a narrow screen
    } else link.removeAttribute("aria-current");
  }
  showFields();
  byId("examples").replaceChildren(
    make("span", {}, "Try:"),
    ...task.examples.map((example) =>
      make("button", { type: "button", onclick: () => tryExample(example) }, Object.values(example)[0]),
    ),
  );
  clearMessages();
  byId("result").hidden = true;
}

function clearMessages() {
  byId("problem").replaceChildren();
  byId("spoken").textContent = "";
}

function showFields() {
  const models = modelsFor(page.task);
  const options = models.map(({ name }) => make("option", { value: name, selected: name === page.model && "" }, name));
  byId("model-choice").replaceChildren(
    models.length > 1
      ? make("label", {}, "Model", make("select", { onchange: (event) => chooseModel(event.target.value) }, ...options))
      : make("p", { class: "model" }, "Model: ", make("strong", {}, page.model)),
  );
  const takesPairs = models.find((model) => model.name === page.model).takes_pairs;
  const fields = TASKS[page.task].fields.filter((field) => !field.optional || takesPairs);
  byId("fields").replaceChildren(...fields.map(fieldElement));
}

function chooseModel(name) {
  remember();
  page.model = name;
  showFields();
  byId("model-choice").querySelector("select").focus();
}

function fieldElement(field) {
  const id = `field-${field.name}`;
  const input = make("textarea", { id, name: field.name, rows: field.rows, spellcheck: "false", onkeydown: askOnEnter });
  input.value = written[page.task]?.[field.name] ?? "";
  const error = make("p", { class: "field-error", id: `${id}-error` });
  const label = make("label", { for: id }, field.label);
  if (!field.mask) return make("div", { class: "field" }, label, input, error);
  const insert = make("button", { type: "button", class: "quiet", onclick: () => insertMask(input) }, "Insert [MASK]");
  return make("div", { class: "field" }, make("div", { class: "label-row" }, label, insert), input, error);
}

function insertMask(input) {
  input.setRangeText("[MASK]", input.selectionStart, input.selectionEnd, "end");
  input.focus();
}

function askOnEnter(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    byId("form").requestSubmit();
  }
}

function remember() {
  const inputs = byId("fields").querySelectorAll("textarea");
  written[page.task] = Object.fromEntries([...inputs].map((input) => [input.name, input.value.toWellFormed?.() ?? input.value]));
}

function tryExample(example) {
  for (const input of byId("fields").querySelectorAll("textarea")) input.value = example[input.name] ?? "";
  byId("form").requestSubmit();
}

function address() {
  const state = new URLSearchParams({ task: page.task, model: page.model });
  for (const [name, text] of Object.entries(written[page.task])) if (text) state.set(name, text);
  for (const [name, value] of Object.entries(page.view)) state.set(name, value);
  return `#${state}`;
}

function keepView(view) {
  page.view = view;
  history.replaceState(null, "", address());
}

async function ask() {
  remember();
  const [asked, task, fields] = [++page.asked, page.task, written[page.task]];
  // Not location.hash, which would come back as an event and ask again.
  if (location.hash !== address()) history.pushState(null, "", address());
  clearMessages();
  markField(null);
  setBusy(true);
  try {
    const { answer, cut_to: cutTo, request } = await fetched("page/ask", { task, model: page.model, fields });
    if (asked === page.asked) showAnswer(ANSWERS[task](answer, page.view, keepView), cutTo, request);
  } catch (error) {
    if (asked !== page.asked) return;
    byId("result").hidden = true;
    if (error.field) markField(error.field, error.message);
    else showProblem(error, ask);
  } finally {
    if (asked === page.asked) setBusy(false);
  }
}

async function fetched(path, body) {
  const options = body && { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer. It may have been stopped, or the connection is broken.");
  }
  const content = await response.json().catch(() => ({ error: `The server answered with error ${response.status}.` }));
  if (response.ok) return content;
  const busy = [429, 503, 504].includes(response.status) ? " Try again in a moment." : "";
  throw Object.assign(new Error(content.error + busy), { field: content.field });
}

function showAnswer({ summary, details }, cutTo, request) {
  byId("result").hidden = false;
  byId("summary").textContent = summary;
  byId("spoken").textContent = summary; // for screen readers, which do not announce what was hidden before
  byId("details").replaceChildren(...details);
  if (cutTo) {
    const text = `The ${page.task === "answer" ? "question" : "text"} is too long: the model read only its first ${cutTo} tokens, which are words and parts of words.`;
    byId("details").append(make("p", { class: "notice" }, text));
  }
  const address = new URL(request.path, location.href.split("#")[0]);
  const body = JSON.stringify(request.body).replaceAll("'", "\\u0027"); // which the shell would take as the end
  byId("request").querySelector("pre").textContent = `curl ${address} -d '${body}'`;
  byId("result").scrollIntoView({ block: "nearest" });
}

function markField(name, message = "") {
  for (const input of byId("fields").querySelectorAll("textarea")) {
    const isMeant = input.name === name;
    byId(`${input.id}-error`).textContent = isMeant ? message : "";
    if (isMeant) {
      input.setAttribute("aria-invalid", "true");
      input.setAttribute("aria-describedby", `${input.id}-error`);
      input.focus();
    } else {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    }
  }
}

function showProblem(error, again) {
  byId("problem").replaceChildren(
    make("div", { class: "problem" },
      make("p", {}, error.message),
      make("button", { type: "button", onclick: again }, "Try again")),
  );
}

function setBusy(isBusy) {
  byId("submit").textContent = isBusy ? "Working …" : TASKS[page.task].button;
  byId("submit").setAttribute("aria-disabled", isBusy); // not disabled, which would lose the focus
  byId("result").classList.toggle("old", isBusy);
}

async function copyLink(event) {
  const button = event.currentTarget;
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copy it from the address bar";
  }
  setTimeout(() => (button.textContent = "Copy link"), 3000);
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (byId("submit").getAttribute("aria-disabled") === "true") return;
  page.view = {};
  ask();
});
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
byId("copy-link").addEventListener("click", copyLink);
addEventListener("hashchange", () => {
  if (page.task) remember();
  followAddress();
});
start();
