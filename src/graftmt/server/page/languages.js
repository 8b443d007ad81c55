// The languages and routes that are served, and the two pickers. Reloaded when packs come or go.

import { get } from "./api.js";

export const AUTO = "auto";
export const known = { languages: new Map(), routes: new Map(), version: 0 };

const source = document.getElementById("source");
const target = document.getElementById("target");

export async function loadLanguages() {
  const [version, found] = [await get("v1/version"), await get("v1/routes")];
  known.version = version.version;
  known.languages = new Map(found.languages.map((language) => [language.code, language]));
  known.routes = new Map(found.routes.map((route) => [`${route.source} ${route.target}`, route]));
}

export function routeOf(from, to) {
  return known.routes.get(`${from} ${to}`);
}

export function nameOf(code) {
  return known.languages.get(code)?.name ?? code;
}

function words(language) {
  const own = language.own_name !== language.name ? ` · ${language.own_name}` : "";
  return `${language.name}${own}`;
}

function options(languages, mark) {
  const sorted = [...languages].sort((a, b) => a.name.localeCompare(b.name));
  const groups = [
    ["Languages of the base", sorted.filter((language) => !language.new)],
    ["New languages (packs)", sorted.filter((language) => language.new)],
  ];
  return groups
    .filter(([, members]) => members.length)
    .map(([label, members]) => {
      const group = document.createElement("optgroup");
      group.label = label;
      group.append(...members.map((language) => new Option(words(language) + mark(language), language.code)));
      return group;
    });
}

function fill(picker, children, wanted) {
  picker.replaceChildren(...children);
  const values = [...picker.options].map((option) => option.value);
  picker.value = values.includes(wanted) ? wanted : values[0];
}

export function fillSource(wanted) {
  const readable = [...known.languages.values()].filter((language) => language.reads);
  const children = options(readable, (language) => (language.new ? " (new)" : ""));
  fill(source, [new Option("Detect the language", AUTO), ...children], wanted ?? source.value);
}

// What can be written depends on nothing but packs; whether it was trained depends on the source.
export function fillTarget(wanted) {
  const from = source.value;
  const writable = [...known.languages.values()].filter((language) => language.writes && language.code !== from);
  const mark = (language) => {
    const notes = [];
    if (language.new) notes.push("new");
    if (routeOf(from, language.code)?.zero_shot) notes.push("zero-shot");
    return notes.length ? ` (${notes.join(", ")})` : "";
  };
  fill(target, options(writable, mark), wanted ?? target.value);
}

export function routeWords(from, to) {
  const route = routeOf(from, to);
  if (!route) return "";
  const parts = [`${nameOf(from)} → ${nameOf(to)}`];
  if (route.kind === "composed") parts.push("two packs combined");
  if (route.zero_shot) parts.push("zero-shot: no pack was trained on it");
  const chrf = route.scores?.chrf;
  if (chrf !== undefined) parts.push(`chrF ${chrf.toFixed(1)}`);
  return parts.join(" · ");
}
