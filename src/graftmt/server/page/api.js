// What the page asks of the server. Each call may be aborted; an error has the server's own sentence.

export class ServerError extends Error {}

let key = sessionStorage.getItem("graftmt-key") ?? "";

export function setKey(value) {
  key = value;
  sessionStorage.setItem("graftmt-key", value);
}

export function storedKey() {
  return key;
}

function headers(extra = {}) {
  return key ? { ...extra, "X-API-Key": key } : extra;
}

async function checked(response) {
  if (response.ok) return response;
  let message = `The server answered ${response.status}.`;
  try {
    message = (await response.json()).error ?? message;
  } catch {
    // not JSON: a proxy in between
  }
  throw new ServerError(message);
}

async function reach(path, options) {
  try {
    return await checked(await fetch(path, options));
  } catch (error) {
    if (error instanceof ServerError || error.name === "AbortError") throw error;
    throw new ServerError("The server cannot be reached. Is it running?");
  }
}

export async function get(path) {
  return (await reach(path, { headers: headers() })).json();
}

export async function post(path, fields, signal) {
  const body = JSON.stringify(fields);
  return (await reach(path, { method: "POST", headers: headers({ "Content-Type": "application/json" }), body, signal })).json();
}

// Calls `hear` with each JSON line as it comes.
export async function stream(path, fields, signal, hear) {
  const body = JSON.stringify(fields);
  const options = { method: "POST", headers: headers({ "Content-Type": "application/json" }), body, signal };
  const reader = (await reach(path, options)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const found = JSON.parse(line);
      if (found.error) throw new ServerError(found.error);
      hear(found);
    }
  }
}
