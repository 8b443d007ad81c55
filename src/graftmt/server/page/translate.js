// The two panes: text in, translation out, files, alternatives, swapping.

import { post, stream } from "./api.js";
import { AUTO, fillSource, fillTarget, known, nameOf, routeWords } from "./languages.js";
import { clearError, showError } from "./messages.js";

const WAIT = 600; // milliseconds after the last key until it is translated
const LONG = 1500; // characters from which sentences are shown as they come
const FORMATS = { html: "html", htm: "html", xhtml: "html", srt: "srt" };
const ALTERNATIVES = 3;

const element = (id) => document.getElementById(id);
const source = element("source");
const target = element("target");
const input = element("source-text");
const output = element("target-text");

let timer = 0;
let running = null;
let file = null;
let detected = null;

function direction(code) {
  return known.languages.get(code)?.right_to_left ? "rtl" : "ltr";
}

function describeRoute() {
  const from = source.value === AUTO ? detected : source.value;
  element("route").textContent = from ? routeWords(from, target.value) : "";
  input.dir = source.value === AUTO && !detected ? "auto" : direction(from);
  output.dir = direction(target.value);
  output.lang = target.value;
  if (from) input.lang = from;
}

function showDetected(found) {
  detected = found?.language ?? null;
  const option = source.options[0];
  option.text = found?.confidence ? `Detected: ${nameOf(found.language)} (${Math.round(found.confidence)} %)` : "Detect the language";
}

function show(text) {
  output.textContent = text;
  output.classList.remove("old");
  element("copy").disabled = !text;
}

function showAlternatives(ways) {
  const list = element("alternative-list");
  list.replaceChildren(
    ...ways.map((text) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.lang = target.value;
      button.dir = direction(target.value);
      button.title = "Use this one";
      button.addEventListener("click", () => show(text));
      item.append(button);
      return item;
    }),
  );
  element("alternatives").hidden = !ways.length;
}

function offerDownload(text) {
  const link = element("download");
  if (link.href) URL.revokeObjectURL(link.href);
  link.hidden = !file;
  if (!file) return;
  const [stem, ending] = [file.name.replace(/\.[^.]*$/, ""), file.name.split(".").pop()];
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = `${stem}.${target.value}.${ending}`;
  link.textContent = `Download ${link.download}`;
}

async function translateLong(fields, signal) {
  const text = fields.q;
  let from = 0;
  let done = "";
  await stream("v1/translate/stream", fields, signal, (line) => {
    if (line.text === undefined) return;
    // JavaScript counts UTF-16 units, the server characters.
    done += slice(text, from, line.start) + line.text;
    from = line.end;
    show(done);
  });
  return done + slice(text, from);
}

let characters = { text: "", list: [] };
function slice(text, start, end) {
  if (characters.text !== text) characters = { text, list: [...text] };
  return characters.list.slice(start, end).join("");
}

export async function translate() {
  clearTimeout(timer);
  running?.abort();
  clearError();
  const text = input.value;
  showAlternatives([]);
  if (!text.trim()) {
    show("");
    showDetected(null);
    describeRoute();
    return;
  }
  const run = (running = new AbortController());
  output.classList.add("old");
  element("busy").textContent = "Translating…";
  try {
    const form = file ? (FORMATS[file.name.split(".").pop().toLowerCase()] ?? "text") : "text";
    const fields = { q: text, source: source.value, target: target.value, format: form };
    const more = element("more").checked ? ALTERNATIVES : 0;
    let result;
    if (text.length > LONG && form === "text" && !more && source.value !== AUTO) {
      result = await translateLong(fields, run.signal);
    } else {
      const answer = await post("translate", { ...fields, alternatives: more }, run.signal);
      result = answer.translatedText;
      showDetected(answer.detectedLanguage);
      showAlternatives(answer.alternatives ?? []);
    }
    show(result);
    offerDownload(result);
    describeRoute();
  } catch (error) {
    if (error.name === "AbortError") return;
    show("");
    showError(error.message);
  } finally {
    if (running === run) element("busy").textContent = "";
  }
}

export function soon() {
  clearTimeout(timer);
  timer = setTimeout(translate, WAIT);
}

function count() {
  const length = [...input.value].length;
  element("count").textContent = length ? `${length.toLocaleString()} characters` : "";
}

function changed() {
  file = null;
  element("download").hidden = true;
  count();
  soon();
}

export function swap() {
  clearError();
  const from = source.value === AUTO ? detected : source.value;
  const to = target.value;
  const reads = known.languages.get(to)?.reads;
  const writes = from && known.languages.get(from)?.writes;
  if (!reads || !writes) {
    const missing = !reads ? `no pack reads ${nameOf(to)}` : from ? `no pack writes ${nameOf(from)}` : "the language is not known yet";
    showError(`These cannot be swapped: ${missing}.`);
    return;
  }
  const text = output.textContent;
  fillSource(to);
  fillTarget(from);
  if (text) input.value = text;
  changed();
  describeRoute();
  translate();
}

async function openFile(chosen) {
  clearError();
  if (!chosen) return;
  if (chosen.size > 1_500_000) {
    showError("This file is too large for the page; send it as a job (see the API).");
    return;
  }
  input.value = new TextDecoder().decode(await chosen.arrayBuffer());
  file = chosen;
  count();
  translate();
}

export function pickersChanged() {
  const kept = target.value;
  fillTarget(kept);
  if (source.value !== AUTO) showDetected(null);
  describeRoute();
}

export function startTranslating() {
  input.addEventListener("input", changed);
  source.addEventListener("change", () => (pickersChanged(), translate()));
  target.addEventListener("change", () => (describeRoute(), translate()));
  element("go").addEventListener("click", translate);
  element("more").addEventListener("change", translate);
  element("swap").addEventListener("click", swap);
  element("clear").addEventListener("click", () => {
    input.value = "";
    changed();
    translate();
    input.focus();
  });
  element("copy").addEventListener("click", copy);
  element("file").addEventListener("change", (event) => openFile(event.target.files[0]));
  element("file-label").addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") element("file").click();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translate();
    if (event.altKey && event.code === "KeyS") {
      event.preventDefault();
      swap();
    }
  });
  const pane = input.closest(".pane");
  for (const name of ["dragover", "dragleave", "drop"]) {
    pane.addEventListener(name, (event) => {
      event.preventDefault();
      pane.classList.toggle("over", name === "dragover");
      if (name === "drop") openFile(event.dataTransfer.files[0]);
    });
  }
  describeRoute();
}

async function copy() {
  const button = element("copy");
  try {
    await navigator.clipboard.writeText(output.textContent);
    button.textContent = "Copied";
  } catch {
    const range = document.createRange();
    range.selectNodeContents(output);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    button.textContent = "Selected: press Ctrl+C";
  }
  setTimeout(() => (button.textContent = "Copy"), 2000);
}

