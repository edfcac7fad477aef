// Requests to the server: with a key if it needs one, with retries if it is busy.

const KEY = "cfner-key";
const SENDABLE = /^[!-~]+$/; // as keys of servers are; of any other the browser would not make a header
let key = stored();
let askForKey = async () => "";

function stored() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return ""; // storage may be switched off: the key then lives as long as the page
  }
}

/** `ask(wrong)` resolves to a key that the user gave. */
export function onKeyNeeded(ask) {
  let asking = null; // several requests may be refused at once, the user is asked once
  askForKey = (wrong) => (asking ??= ask(wrong).finally(() => (asking = null)));
}

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function call(path, options, signal) {
  for (let attempt = 0; ; attempt++) {
    const sent = key;
    const headers = { ...(options.headers ?? {}), ...(SENDABLE.test(sent) ? { Authorization: `Bearer ${sent}` } : {}) };
    let response;
    try {
      response = await fetch(path, { ...options, headers, signal, cache: "no-store", credentials: "omit" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ServerError(0, "The server does not answer. Is it still running?");
    }
    if (response.ok) return response.json();
    if (response.status === 401) {
      if (sent === key) key = await askForKey(sent !== "");
      continue;
    }
    if (response.status === 429 && attempt < 5) {
      await new Promise((wake) => setTimeout(wake, 300 * 2 ** attempt));
      signal?.throwIfAborted();
      continue;
    }
    const told = await response.json().catch(() => ({}));
    throw new ServerError(response.status, told.detail ?? `The server answered with status ${response.status}.`);
  }
}

export function rememberKey(given) {
  try {
    sessionStorage.setItem(KEY, given);
  } catch {
    // see above
  }
  return given;
}

export const fetchModel = () => call("/model", {});

export function fetchEntities(texts, step, signal) {
  const body = JSON.stringify({ texts: texts.map((text) => (text.toWellFormed ? text.toWellFormed() : text)), step });
  return call("/predict", { method: "POST", body, headers: { "Content-Type": "application/json" } }, signal);
}
