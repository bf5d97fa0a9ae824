// What makes pages nicer where scripts run; without them everything works by forms and links.
"use strict";

function part(url, options) {
  return fetch(url, { credentials: "same-origin", headers: { Accept: "text/html" }, ...options }).then((answer) => {
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.text();
  });
}

// -- the slider that replays the log --------------------------------------------------------------------------------
function replays(root) {
  const form = root.querySelector("form.slider");
  if (!form) return;
  const range = form.querySelector("input[type=range]");
  const number = form.querySelector("input[type=number]");
  const play = form.querySelector("button.play");
  const place = root.querySelector("#replay");
  const most = Number(range.max);
  let asked = 0, waiting = null, timer = null;
  form.querySelector("button.show").hidden = true;
  range.hidden = play.hidden = false;
  const show = (at) => {
    range.value = number.value = at;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const mine = ++asked;
      const query = new URLSearchParams(new FormData(form));
      part(form.dataset.part + "?" + query).then((html) => { if (mine === asked) place.innerHTML = html; }).catch(() => {});
    }, 60);
  };
  const stop = () => { clearInterval(timer); timer = null; play.textContent = "▶ Replay"; };
  range.addEventListener("input", () => show(range.value));
  number.addEventListener("input", () => { if (number.value !== "" && number.checkValidity()) show(number.value); });
  play.addEventListener("click", () => {
    if (timer) return stop();
    play.textContent = "❚❚ Stop";
    let at = Number(range.value) >= most ? 0 : Number(range.value);
    show(at);
    timer = setInterval(() => {  // a long log is learned from in its first rounds: there the steps are small
      at = Math.min(at + Math.max(Math.ceil(Math.min(most, 40 + 4 * at) / 30), 1), most);
      show(at);
      if (at >= most) stop();
    }, 220);
  });
}

// -- a page that follows its experiment -----------------------------------------------------------------------------
function follows() {
  const live = document.getElementById("live");
  if (!live) return;
  setInterval(() => {
    const range = live.querySelector("form.slider input[type=range]");
    const busy = live.querySelector("button.play")?.textContent.includes("Stop") ||
      (range && Number(range.value) < Number(range.max)) || live.contains(document.activeElement);
    if (document.hidden || busy) return;
    part(live.dataset.live).then((text) => {
      const now = JSON.parse(text);
      if (String(now.closed) === live.dataset.closed && String(now.trials) === live.dataset.trials) return;
      return part(location.href).then((html) => {
        const next = new DOMParser().parseFromString(html, "text/html").getElementById("live");
        if (!next) return;
        live.innerHTML = next.innerHTML;
        Object.assign(live.dataset, next.dataset);
        replays(document);
      });
    }).catch(() => {});
  }, 2500);
}

// -- a graph that is drawn as it is typed ---------------------------------------------------------------------------
function draws() {
  const form = document.querySelector("form[data-preview]");
  if (!form) return;
  const place = document.getElementById("preview");
  let waiting = null, asked = 0;
  const draw = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const mine = ++asked;
      part(form.dataset.preview, { method: "POST", body: new URLSearchParams(new FormData(form)) })
        .then((html) => {
          if (mine !== asked) return;
          const at = document.activeElement, inside = place.contains(at) ? at.name : null;
          const typed = new Map([...place.querySelectorAll(".typed")].map((one) => [one.name, one.value]));
          const from = at.selectionStart, to = at.selectionEnd;
          place.innerHTML = html;
          for (const one of place.querySelectorAll(".typed")) {
            if (typed.has(one.name)) one.value = typed.get(one.name);
          }
          for (const one of place.querySelectorAll("input, select")) {
            if (one.name !== inside || (one.type === "radio" && one.value !== at.value)) continue;
            one.focus();
            if (from !== undefined && from !== null) one.setSelectionRange(from, to);
          }
        }).catch(() => {});
    }, 250);
  };
  form.addEventListener("input", (event) => {
    const drawn = event.target.id === "text" || event.target.name === "format" || place.contains(event.target);
    if (drawn && !event.target.classList.contains("typed")) draw();
  });
}

replays(document);
follows();
draws();
