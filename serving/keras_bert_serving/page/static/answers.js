// From an answer of the server to a sentence that says it, and to elements that show it.

import { showAttention } from "./attention.js";
import { make, percent, quoted } from "./elements.js";

export const ANSWERS = {
  "fill-mask": showGuesses,
  classify: showClasses,
  rate: (answer) => ({ summary: `The model says ${Number(answer.value.toPrecision(4))}.`, details: [] }),
  "next-sentence": showContinuation,
  answer: showPassage,
  entities: showEntities,
  compare: showComparison,
  choose: showEndings,
  attention: showAttention,
};

function bars(rows, label) {
  return make(
    "ol",
    { class: "bars", "aria-label": label },
    ...rows.map(({ name, probability, chosen }, place) => {
      const bar = make("span", { class: "bar", "aria-hidden": "true" });
      bar.style.width = `${100 * probability}%`;
      return make(
        "li",
        { class: (chosen ?? place === 0) ? "chosen" : "" },
        make("span", { class: "name" }, name),
        make("span", { class: "value" }, percent(probability)),
        make("span", { class: "track", "aria-hidden": "true" }, bar),
      );
    }),
  );
}

function notice(text) {
  return make("p", { class: "notice" }, text);
}

function showGuesses({ masks, unread_masks: unread }) {
  const words = masks.map((guesses) => guesses.map((guess) => ({ ...guess, name: wordOf(guess.name) })));
  const details = words.flatMap((guesses, place) => [
    ...(masks.length > 1 ? [make("h4", {}, `Word ${place + 1}`)] : []),
    bars(guesses, `Guesses for word ${place + 1}`),
  ]);
  if (unread) {
    const which = masks.length ? "The last " : "";
    details.push(notice(`${which}[MASK] lies beyond the part of the text that the model reads. Shorten the text.`));
  }
  if (!masks.length) return { summary: "The model did not reach any [MASK].", details };
  const likeliest = words.map((guesses) => quoted(guesses[0].name)).join(" and ");
  return { summary: masks.length > 1 ? `Most likely: ${likeliest}` : `${likeliest}, ${percent(words[0][0].probability)} sure`, details };
}

// "##s" is a piece that continues the word before it.
function wordOf(token) {
  return token.startsWith("##") ? `…${token.slice(2)}` : token;
}

function showClasses({ classes, chosen, several }) {
  const details = [bars(classes.map((row) => ({ ...row, chosen: chosen.includes(row.name) })), "All classes")];
  if (several) {
    const named = chosen.length ? chosen.join(", ") : "none of the classes";
    return { summary: `This text is: ${named}.`, details };
  }
  return { summary: `${chosen[0]}, ${percent(classes[0].probability)} sure`, details };
}

function showContinuation({ probability }) {
  const rows = [
    { name: "It follows", probability, chosen: probability >= 0.5 },
    { name: "It does not", probability: 1 - probability, chosen: probability < 0.5 },
  ];
  const sure = Math.max(probability, 1 - probability);
  const summary = probability >= 0.5 ? "Yes, it could follow" : "No, it would not follow";
  const isUndecided = sure < 0.6;
  return { summary: isUndecided ? "The model cannot tell" : `${summary}: ${percent(sure)} sure`, details: [bars(rows, "Both")] };
}

function showPassage({ before, answer, after }) {
  if (!answer) {
    return { summary: "The model finds no answer in this passage.", details: [make("p", { class: "passage" }, before + after)] };
  }
  const passage = make("p", { class: "passage" }, before, make("mark", {}, answer), after);
  return { summary: answer.trim(), details: [passage] };
}

// Labels as models are trained with them, in words.
const KINDS = { PER: "person", LOC: "place", ORG: "organization", MISC: "other name" };

function kindOf(label) {
  return KINDS[label] ?? label.replaceAll(/[-_]/g, " ");
}

function showEntities({ parts, unread_words: unread }) {
  const found = parts.filter((part) => part.label !== undefined);
  const kinds = [...new Set(found.map((part) => part.label))].sort();
  const color = (label) => `kind kind-${kinds.indexOf(label) % 8}`;
  const text = make(
    "p",
    { class: "passage" },
    ...parts.map((part) =>
      part.label === undefined
        ? part.text
        : make("mark", { class: color(part.label) }, part.text, make("span", { class: "label" }, kindOf(part.label))),
    ),
  );
  const details = [text];
  if (found.length) {
    const head = make("tr", {}, ...["Name", "Kind", "How sure"].map((name) => make("th", { scope: "col" }, name)));
    const rows = found.map((part) =>
      make(
        "tr",
        {},
        make("td", {}, part.text),
        make("td", {}, make("span", { class: color(part.label) }, kindOf(part.label))),
        make("td", { class: "number" }, percent(part.probability)),
      ),
    );
    details.push(make("table", { class: "list" }, make("thead", {}, head), make("tbody", {}, ...rows)));
  }
  if (unread) details.push(notice(`The text is too long: the model did not read its last ${unread} words.`));
  const count = found.length === 1 ? "1 name" : `${found.length} names`;
  return { summary: found.length ? `${count} found` : "The model found no names in this text.", details };
}

function decimal(value) {
  return value.toFixed(2).replace("-", "−");
}

function showComparison({ sentences, cosines }) {
  let closest = [0, 1];
  for (let i = 0; i < sentences.length; i++) {
    for (let j = i + 1; j < sentences.length; j++) {
      if (cosines[i][j] > cosines[closest[0]][closest[1]]) closest = [i, j];
    }
  }
  const [first, second] = closest;
  const numbers = sentences.map((_, place) => make("th", { scope: "col" }, String(place + 1)));
  const rows = sentences.map((sentence, i) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, make("span", { class: "ordinal" }, String(i + 1)), ` ${sentence}`),
      ...sentences.map((_, j) => {
        const cell = make("td", { class: i === j ? "number same" : "number" }, decimal(cosines[i][j]));
        cell.style.setProperty("--share", `${Math.round(60 * Math.max(0, i === j ? 0 : cosines[i][j]))}%`);
        return cell;
      }),
    ),
  );
  const table = make(
    "table",
    { class: "matrix" },
    make("caption", {}, "How close each sentence is to each other one"),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Sentence"), ...numbers)),
    make("tbody", {}, ...rows),
  );
  const summary = `Closest: sentences ${first + 1} and ${second + 1} (${decimal(cosines[first][second])})`;
  return { summary, details: [make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, table)] };
}

function showEndings({ endings, chosen }) {
  const details = [bars(endings.map((row, place) => ({ ...row, chosen: place === chosen })), "All endings")];
  return { summary: endings[chosen].name, details };
}
