// Communication with the server. Answers are kept in the browser, and sent again with the same tokens,
// until the server confirms that they are on disk: none is lost, and none counts twice. They are sent
// one after the other, in the order in which they were given.

import { $, count, toast } from "./dom.js";

const OUTBOX = "spinal-outbox";

/** 128 random bits; crypto.randomUUID is missing on pages served over plain HTTP. */
export function token() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

/** The id of this tab: it gets the same questions again when it is reloaded. */
function client() {
  let id = sessionStorage.getItem("spinal-client");
  if (!id) sessionStorage.setItem("spinal-client", (id = token()));
  return id;
}

export const person = {
  get: () => localStorage.getItem("spinal-person") || "",
  set: (name) => localStorage.setItem("spinal-person", name.trim()),
};

/** The server refused a request, with the reason. */
export class Refusal extends Error {}

async function request(path, options) {
  const response = await fetch(path, { ...options, credentials: "same-origin" });
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  if (response.status < 500 && body.error) throw new Refusal(body.error);
  throw new Error(body.error || `${response.status} ${response.statusText}`);
}

export const get = (path) => request(path);

export const post = (path, body) =>
  request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ client: client(), person: person.get(), ...body }),
  });

/** Make a file of labels, or of the model; returns its address, name and size. */
export const makeFile = (to, predictions) => post("/api/export", { to, predictions });

/** The model's prediction for the content of a file. */
export const tryContent = (content) =>
  request("/api/try", { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: content });

/** Post until it succeeds. Gives up only if the server refuses; a full disk is not a refusal. */
async function insist(path, body) {
  for (;;) {
    try {
      const result = await post(path, body);
      complain("");
      return result;
    } catch (error) {
      if (error instanceof Refusal) throw error;
      complain(error instanceof TypeError // thrown by fetch if there is no connection
        ? "The server does not answer. Your last answer is kept here, and sent when the server is back."
        : `${error.message}. Your last answer is kept here, and sent again until it is saved.`);
      await new Promise((wake) => setTimeout(wake, 700));
    }
  }
}

export function complain(text) {
  $("alert").textContent = text;
  $("alert").hidden = !text;
}

export const next = (n) => insist("/api/next", { n });

const batches = []; // for each submission since the page was opened, the tokens of its answers
let sent = Promise.resolve(); // resolves when all earlier answers have been sent

/** Requests of all tabs that the server has not acknowledged: id, path and body. */
const outbox = {
  read: () => JSON.parse(localStorage.getItem(OUTBOX) ?? "[]"),
  write: (requests) => requests.length ? localStorage.setItem(OUTBOX, JSON.stringify(requests)) : localStorage.removeItem(OUTBOX),
  add: (request) => outbox.write([...outbox.read(), request]),
  remove: ({ id }) => outbox.write(outbox.read().filter((other) => other.id !== id)),
};

/** Send a request after all earlier ones are stored, and return the reply. */
function send(path, body) {
  const request = { id: token(), path, body: { ...body, person: person.get() } };
  outbox.add(request);
  const reply = sent.then(() => insist(path, request.body)).finally(() => outbox.remove(request));
  sent = reply.catch(() => {});
  return reply;
}

/** Set the flag or the note of images; returns all notes on the first. */
export const note = (images, what) => send("/api/notes", { images, ...what });

export async function answer(answers, n = 0) {
  const reply = await send("/api/answers", { answers, n });
  batches.push(answers.map((each) => each.token));
  return reply;
}

/** Resolves when all answers so far are stored or refused. */
export const allSent = () => sent;

/** The token of the last answer of this page; undefined if there is none to undo. */
export const lastAnswer = () => batches.at(-1)?.at(-1);

/** Undo an answer, and all that were submitted together with it. */
export async function undo(token, n = 0) {
  const at = batches.findLastIndex((batch) => batch.includes(token));
  const tokens = at < 0 ? [token] : batches[at];
  const reply = await insist("/api/undo", { tokens, n });
  if (at >= 0) batches.splice(at, 1);
  return { ...reply, undone: tokens.length };
}

/** Undo the last answer, and show a message; false if there is none. */
export async function undoLast() {
  const last = lastAnswer();
  if (!last) {
    toast("There is nothing to undo.");
    return false;
  }
  try {
    const { undone } = await undo(last);
    toast(`${count(undone, "answer")} undone.`);
  } catch (error) {
    complain(error.message);
  }
  return true;
}

/** Send requests that were not acknowledged before the page was closed. */
export async function sendLeftOvers() {
  for (const request of outbox.read()) {
    const { path = "/api/answers", body = request } = request; // older versions stored only the body
    await insist(path, body).catch((error) => complain(error.message));
    outbox.remove(request);
  }
}
