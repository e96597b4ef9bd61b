// Attention of one token to all others, for one head or the mean of several, and all heads as small pictures.

import { make, percent, quoted } from "./elements.js";

const CELL = 34; // pixels of a small picture, at most

export function showAttention({ tokens, layers, heads, weights }) {
  const shares = Uint8Array.from(atob(weights), (letter) => letter.charCodeAt(0)); // (layers, heads, length, length)
  const length = tokens.length;
  const chosen = { layer: -1, head: -1, token: Math.min(1, length - 1) }; // -1 is the mean
  const spoken = make("p", { class: "attention-spoken", "aria-live": "polite" });
  const buttons = tokens.map((token, place) =>
    make("button", { type: "button", class: "token", onclick: () => choose({ token: place }) }, token),
  );
  const canvas = make("canvas", { class: "heads", "aria-hidden": "true", onclick: chooseByClick });

  function share(from, to) {
    const ofLayers = chosen.layer < 0 ? range(layers) : [chosen.layer];
    const ofHeads = chosen.head < 0 ? range(heads) : [chosen.head];
    let sum = 0;
    for (const layer of ofLayers) {
      for (const head of ofHeads) sum += shares[((layer * heads + head) * length + from) * length + to];
    }
    return sum / 255 / ofLayers.length / ofHeads.length;
  }

  function choose(change) {
    Object.assign(chosen, change);
    layerChoice.value = chosen.layer;
    headChoice.value = chosen.head;
    const received = tokens.map((_, to) => share(chosen.token, to));
    const most = Math.max(...received, 1e-6);
    buttons.forEach((button, to) => {
      button.setAttribute("aria-pressed", to === chosen.token);
      button.style.setProperty("--share", `${Math.round((70 * received[to]) / most)}%`);
      button.title = percent(received[to]);
    });
    const order = range(length).sort((a, b) => received[b] - received[a]).slice(0, 3);
    const seen = order.filter((to) => received[to] >= 0.005);
    const named = seen.map((to) => `${quoted(tokens[to])} ${percent(received[to])}`);
    spoken.textContent = `${quoted(tokens[chosen.token])} looks most at ${named.join(", ")}.`;
    draw(canvas, shares, { layers, heads, length }, chosen);
  }

  function chooseByClick(event) {
    const box = canvas.getBoundingClientRect();
    const head = Math.floor(((event.clientX - box.left) / box.width) * heads);
    const layer = Math.floor(((event.clientY - box.top) / box.height) * layers);
    choose({ layer: Math.min(layer, layers - 1), head: Math.min(head, heads - 1) });
  }

  const [layerField, layerChoice] = choice("Layer", "all layers", layers, (layer) => choose({ layer }));
  const [headField, headChoice] = choice("Head", "all heads", heads, (head) => choose({ head }));
  choose({});
  return {
    summary: "Choose a word to see where it looks.",
    details: [
      make("div", { class: "choices" }, layerField, headField),
      make("div", { class: "tokens", role: "group", "aria-label": "Words" }, ...buttons),
      spoken,
      make("p", { class: "note" }, "The model itself adds [CLS] and [SEP]. Many heads look there when they have nothing to look for."),
      make(
        "figure",
        { class: "all-heads" },
        make("figcaption", {}, "Every head in one picture: a row of pictures is a layer. Click one to choose it."),
        canvas,
      ),
    ],
  };
}

function range(count) {
  return [...Array(count).keys()];
}

function choice(label, all, count, onchange) {
  const options = [make("option", { value: -1 }, `Mean of ${all}`)];
  options.push(...range(count).map((place) => make("option", { value: place }, `${label} ${place + 1}`)));
  const select = make("select", { onchange: () => onchange(Number(select.value)) }, ...options);
  return [make("label", {}, label, select), select];
}

function draw(canvas, shares, { layers, heads, length }, chosen) {
  const cell = Math.max(CELL, length);
  canvas.width = heads * cell;
  canvas.height = layers * cell;
  canvas.style.aspectRatio = `${heads} / ${layers}`;
  canvas.style.maxWidth = `${heads * CELL * 1.5}px`;
  const context = canvas.getContext("2d");
  const colors = getComputedStyle(document.documentElement);
  const pixel = (cell - 4) / length;
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < heads; head++) {
      const [left, top] = [head * cell + 2, layer * cell + 2];
      context.globalAlpha = 1;
      context.fillStyle = colors.getPropertyValue("--sunken");
      context.fillRect(left, top, cell - 4, cell - 4);
      context.fillStyle = colors.getPropertyValue("--accent");
      for (let from = 0; from < length; from++) {
        for (let to = 0; to < length; to++) {
          const share = shares[((layer * heads + head) * length + from) * length + to];
          if (share < 8) continue;
          context.globalAlpha = share / 255;
          context.fillRect(left + to * pixel, top + from * pixel, Math.max(pixel, 1), Math.max(pixel, 1));
        }
      }
      if ((chosen.layer < 0 || chosen.layer === layer) && (chosen.head < 0 || chosen.head === head)) {
        if (chosen.layer < 0 && chosen.head < 0) continue;
        context.globalAlpha = 1;
        context.strokeStyle = colors.getPropertyValue("--text");
        context.lineWidth = 2;
        context.strokeRect(left - 1, top - 1, cell - 2, cell - 2);
      }
    }
  }
}
