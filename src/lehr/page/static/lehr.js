// Replaces what a page shows by what it would show now. Without this file, a reload does the same.
const SOON = 150; // much often changes together
const EVERY = 15000; // times and progress change without an event
const RETRY = 3000;
const PATIENCE = 60000;
const still = "still" in document.body.dataset; // what it shows takes work to find, so only people ask again
let timer, stream, waiting, release;
let asking = false; // for a newer page, which may lack what changes meanwhile
let late = false; // something changed meanwhile

async function refresh() {
  if (still) return;
  if (document.hidden || document.activeElement?.closest("form")) return again(EVERY);
  if (asking) return changed();
  asking = true;
  late = false;
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    const response = await fetch(location.href, { headers: { accept: "text/html" }, signal });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    replace("main", page);
    replace("#freshness", page);
    document.body.classList.remove("stale");
    again(late ? SOON : EVERY);
  } catch {
    document.body.classList.add("stale");
    again(RETRY);
  } finally {
    asking = false;
  }
}

function replace(selector, page) {
  const now = document.querySelector(selector);
  const next = page.querySelector(selector);
  if (!now || !next || now.innerHTML === next.innerHTML) return;
  const open = new Set([...now.querySelectorAll("details[open]")].map((item) => item.id));
  const focused = document.activeElement?.id;
  for (const item of next.querySelectorAll("details")) if (open.has(item.id)) item.open = true;
  now.replaceChildren(...next.childNodes);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

let due = 0;

function again(wait) {
  clearTimeout(timer);
  due = Date.now() + wait;
  timer = setTimeout(refresh, wait);
}

function changed() {
  if (asking) late = true;
  else if (due > Date.now() + SOON) again(SOON);
}

// Browsers allow six connections to a server. One visible page follows the feed for all of a browser, where it
// lets them agree on one: only there, and on encrypted connections or on this machine.
const path = document.body.dataset.events;
const others = path && window.BroadcastChannel ? new BroadcastChannel(path) : null;
if (others) others.onmessage = changed;

function follow() {
  waiting?.abort();
  release?.();
  stream?.close();
  stream = release = null;
  if (document.hidden || !path) return;
  if (!navigator.locks || !others) return listen();
  waiting = new AbortController();
  const held = () => new Promise((done) => { release = done; listen(); });
  navigator.locks.request(path, { signal: waiting.signal }, held).catch(() => {}); // it is hidden by now
}

let heard = false; // of changes: those from before are neither in the page nor in its first stream

function listen() {
  stream = new EventSource(path);
  stream.onopen = () => {
    if (!heard) changed();
    heard = true;
  };
  stream.onmessage = () => { changed(); others?.postMessage(0); };
  stream.addEventListener("problem", () => stream.close()); // what is gone does not matter: it asks again anyway
}

document.addEventListener("visibilitychange", () => {
  follow();
  if (!document.hidden) refresh();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, select, textarea")) return;
  const field = document.querySelector("input[type=search]");
  if (field) {
    event.preventDefault();
    field.focus();
  }
});
follow();
again(EVERY);
