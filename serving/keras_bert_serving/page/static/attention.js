// Attention of one token to all others, for one head or the mean of several, and all heads as small pictures.

import { make, percent, quoted } from "./elements.js";

const NOTE =
  "The model adds [CLS] and [SEP] itself; many heads look there when they have nothing to look for. ## continues a word.";
const CELL = 34; // pixels of a small picture on a narrow screen
const MOST_CELL = 150; // and on the canvas

// `view` is what was chosen before, and `keep` is called with every other choice.
export function showAttention({ tokens, layers, heads, weights }, view, keep) {
  const shares = Uint8Array.from(atob(weights), (letter) => letter.charCodeAt(0)); // (layers, heads, length, length)
  const length = tokens.length;
  const sizes = { layers, heads, length };
  const picture = pictureOf(shares, sizes);
  const within = (value, count, otherwise) => (Number.isInteger(value) && 0 <= value && value < count ? value : otherwise);
  const chosen = {
    layer: within(view.layer, layers, -1), // -1 is the mean
    head: within(view.head, heads, -1),
    token: within(view.token, length, Math.min(1, length - 1)),
  };
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
    show();
    keep({ ...chosen });
  }

  function show() {
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
    draw(canvas, picture, sizes, chosen);
  }

  function chooseByClick(event) {
    const box = canvas.getBoundingClientRect();
    const head = Math.floor(((event.clientX - box.left) / box.width) * heads);
    const layer = Math.floor(((event.clientY - box.top) / box.height) * layers);
    choose({ layer: Math.min(layer, layers - 1), head: Math.min(head, heads - 1) });
  }

  const [layerField, layerChoice] = choice("Layer", "all layers", layers, (layer) => choose({ layer }));
  const [headField, headChoice] = choice("Head", "all heads", heads, (head) => choose({ head }));
  show();
  return {
    summary: "Choose a word to see where it looks.",
    details: [
      make("div", { class: "choices" }, layerField, headField),
      make("div", { class: "tokens", role: "group", "aria-label": "Words" }, ...buttons),
      spoken,
      make("p", { class: "note" }, NOTE),
      make(
        "figure",
        { class: "all-heads" },
        make("figcaption", {}, "All heads; each line of squares is a layer. Click a square to choose its head."),
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

// All heads as they are shown, and a frame around those that are chosen.
function draw(canvas, picture, { layers, heads, length }, chosen) {
  const cell = Math.min(2 * Math.max(CELL, length), MOST_CELL);
  const context = canvas.getContext("2d");
  canvas.width = heads * cell;
  canvas.height = layers * cell;
  canvas.style.maxWidth = `${heads * CELL * 1.5}px`;
  context.imageSmoothingEnabled = picture.width > canvas.width;
  context.fillStyle = colorOf("--sunken");
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < heads; head++) {
      const place = [head * cell + 4, layer * cell + 4, cell - 8, cell - 8];
      context.fillRect(...place);
      context.drawImage(picture, head * length, layer * length, length, length, ...place);
    }
  }
  if (chosen.layer < 0 && chosen.head < 0) return;
  const [left, width] = chosen.head < 0 ? [0, heads] : [chosen.head, 1];
  const [top, height] = chosen.layer < 0 ? [0, layers] : [chosen.layer, 1];
  context.strokeStyle = colorOf("--text");
  context.lineWidth = 4;
  context.strokeRect(left * cell + 2, top * cell + 2, width * cell - 4, height * cell - 4);
}

// A canvas with a pixel for each share: a row of squares for each layer, in a square a line for each token.
function pictureOf(shares, { layers, heads, length }) {
  const picture = make("canvas", { width: heads * length, height: layers * length });
  const context = picture.getContext("2d");
  const image = context.createImageData(picture.width, picture.height);
  const color = parseInt(colorOf("--accent").slice(1), 16);
  for (let place = 0; place < shares.length; place++) {
    const [square, inside] = [Math.floor(place / length ** 2), place % length ** 2];
    const row = Math.floor(square / heads) * length + Math.floor(inside / length);
    const pixel = 4 * (row * picture.width + (square % heads) * length + (inside % length));
    image.data[pixel] = color >> 16;
    image.data[pixel + 1] = (color >> 8) & 255;
    image.data[pixel + 2] = color & 255;
    image.data[pixel + 3] = Math.sqrt(shares[place] / 255) * 255; // the root, so that the eye sees small shares, too
  }
  context.putImageData(image, 0, 0);
  return picture;
}

function colorOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
