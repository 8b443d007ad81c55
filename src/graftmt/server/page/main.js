// Puts the page together: views, theme, and packs that come and go while it is open.

import { get, setKey, storedKey } from "./api.js";
import { fillSource, fillTarget, known, loadLanguages } from "./languages.js";
import { showError, tell } from "./messages.js";
import { showPacks } from "./packs.js";
import { pickersChanged, startTranslating, translate } from "./translate.js";

const LOOK = 2000; // milliseconds between looks for new packs

const element = (id) => document.getElementById(id);

function show(view) {
  for (const name of ["translate", "packs"]) {
    element(name).hidden = name !== view;
    element(`view-${name}`).setAttribute("aria-pressed", String(name === view));
  }
  location.replace(`#${view}`);
  if (view === "packs") showPacks().catch((error) => showError(error.message));
}

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  localStorage.setItem("graftmt-theme", document.documentElement.dataset.theme);
}

async function look() {
  try {
    if (document.hidden || (await get("v1/version")).version === known.version) return;
    const before = new Set(known.languages.keys());
    await loadLanguages();
    fillSource();
    pickersChanged();
    const added = [...known.languages.values()].filter((language) => !before.has(language.code));
    const removed = [...before].filter((code) => !known.languages.has(code));
    if (added.length) tell(`New here: ${added.map((language) => language.name).join(", ")}.`);
    else if (removed.length) tell(`No longer here: ${removed.join(", ")}.`);
    else tell("The packs have changed.");
    if (!element("packs").hidden) await showPacks();
  } catch {
    // the server is away for a moment; the next request says so
  } finally {
    setTimeout(look, LOOK);
  }
}

async function start() {
  const chosen = localStorage.getItem("graftmt-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
  element("theme").addEventListener("click", theme);
  for (const name of ["translate", "packs"]) element(`view-${name}`).addEventListener("click", () => show(name));
  try {
    const [settings] = await Promise.all([get("frontend/settings"), loadLanguages()]);
    element("key-row").hidden = !settings.keyRequired;
    element("key").value = storedKey();
    element("key").addEventListener("change", (event) => (setKey(event.target.value), translate()));
    fillSource(settings.language.source.code);
    fillTarget(settings.language.target.code);
    startTranslating();
    if (location.hash === "#packs") show("packs");
    document.documentElement.dataset.ready = "yes";
  } catch (error) {
    showError(error.message);
  }
  setTimeout(look, LOOK);
}

start();
